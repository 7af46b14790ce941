package planner

import (
	"context"
	"encoding/binary"
	"testing"

	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/sql/expr"
)

// FuzzValuesPosition: the position of a VALUES in a checkpoint is an error, or a row that there is.
func FuzzValuesPosition(f *testing.F) {
	f.Add([]byte{2})
	f.Add(binary.AppendUvarint(nil, 1<<63))
	f.Fuzz(func(t *testing.T, next []byte) {
		v := &valuesTable{rows: make([][]expr.Expr, 3)}
		r, err := v.Open(context.Background(), []checkpoint.Position{{Split: valuesSplit, Next: next}})
		if err != nil {
			return
		}
		if at := r.(*valuesReader).next; at < 0 || at > len(v.rows) {
			t.Fatalf("row %d of %d", at, len(v.rows))
		}
	})
}
