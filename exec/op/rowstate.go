package op

import (
	"github.com/streamsql/streamsql/exec"
	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/types"
)

// rowFormat names the encoding of whole rows in state: the columns in order, each as in a state key.
func rowFormat(s *types.Schema) string {
	f := "row/1"
	for _, c := range s.Columns {
		f += ";" + c.Type.String()
	}
	return f
}

// appendRow appends the encoding of physical row r of b.
func appendRow(dst []byte, b *batch.Batch, r int) []byte {
	for _, v := range b.Cols {
		dst = exec.AppendColumn(dst, v, r)
	}
	return dst
}

// emitRow appends a row held in state to out as a row of kind k.
func emitRow(out *batch.Builder, row []byte, k types.RowKind) error {
	if _, err := exec.DecodeKey(row, out.Cols); err != nil {
		out.Abandon()
		return err
	}
	out.RowKindDone(k)
	return nil
}

// copyRow appends physical row r of b to out as a row of kind k.
func copyRow(out *batch.Builder, b *batch.Batch, r int, k types.RowKind) {
	for i, v := range b.Cols {
		out.Cols[i].AppendFrom(v, r)
	}
	out.RowKindDone(k)
}
