package exec

import (
	"fmt"
	"testing"

	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/types"
)

// BenchmarkKeyEncoder reports the time per row (ns/op is a row).
func BenchmarkKeyEncoder(b *testing.B) {
	s := types.NewSchema(types.Column{Name: "a", Type: types.BigIntType}, types.Column{Name: "b", Type: types.BigIntType},
		types.Column{Name: "c", Type: types.BigIntType}, types.Column{Name: "day", Type: types.StringType})
	bl := batch.NewBuilder(s)
	for i := range batch.Size {
		for k := range 3 {
			bl.Cols[k].AppendI64(int64(i*i) >> k)
		}
		bl.Cols[3].AppendStr("2026-01-01")
		bl.RowDone()
	}
	in := bl.Finish()
	for _, cols := range [][]int{{0}, {0, 1}, {0, 1, 2}, {3}, {3, 0}} {
		b.Run(fmt.Sprint(cols), func(b *testing.B) {
			b.ReportAllocs()
			e := NewKeyEncoder(cols)
			var keys checkpoint.Keys
			for i := 0; i < b.N; i += batch.Size {
				e.Encode(in, &keys)
			}
		})
	}
}
