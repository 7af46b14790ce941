package op

import (
	"encoding/binary"
	"math/rand"
	"reflect"
	"testing"

	"github.com/streamsql/streamsql/exec"
	"github.com/streamsql/streamsql/sql/batch"
)

// FuzzKeyColumns: a damaged key is an error, whatever it holds, and is so for both decoders; one that is not gives the same
// columns.
func FuzzKeyColumns(f *testing.F) {
	s := codecTestSchema()
	cols := make([]int, len(s.Columns))
	for i := range cols {
		cols[i] = i
	}
	b := codecBatch(rand.New(rand.NewSource(1)), s, 3, 3)
	for i := range 3 {
		f.Add(exec.NewKeyEncoder(cols).AppendKey(nil, b, b.Row(i)), []byte{0})
	}
	f.Fuzz(func(t *testing.T, a, b []byte) {
		var d keyColumns
		both := batch.NewBuilder(s)
		err := d.decode([][]byte{a, b}, both.Cols)
		one := batch.NewBuilder(s)
		var want error
		for _, key := range [][]byte{a, b} {
			if _, err := exec.DecodeKey(key, one.Cols); err != nil {
				want = err
				break
			}
			one.RowDone()
		}
		if (err == nil) != (want == nil) {
			t.Fatalf("%v, one by one %v", err, want)
		}
		if err == nil {
			both.RowsDone(2)
			got, want := &rowCollector{}, &rowCollector{}
			_, _ = got.Emit(both.Finish()), want.Emit(one.Finish())
			if !reflect.DeepEqual(got.rows, want.rows) {
				t.Fatalf("%v, one by one %v", got.rows, want.rows)
			}
		}
	})
}

// FuzzJoinEntry: a damaged entry of a join's side is an error.
func FuzzJoinEntry(f *testing.F) {
	f.Add([]byte("row"), []byte{1, 0, 0, 0, 2}, true, uint8(2))
	f.Add([]byte("row"), binary.AppendUvarint(nil, 1<<63), false, uint8(2))
	f.Fuzz(func(t *testing.T, sub, val []byte, counts bool, layout uint8) {
		s := &joinSide{counts: counts, layout: joinLayout(layout % 3)}
		if e, err := s.decode(sub, val); err == nil && e.copies < 0 {
			t.Fatalf("%d copies", e.copies)
		}
	})
}

// FuzzWindowChunk: a damaged chunk of a window join's log is an error.
func FuzzWindowChunk(f *testing.F) {
	s := codecTestSchema()
	c := newRowCodec(s)
	var e encodedRows
	c.encode(codecBatch(rand.New(rand.NewSource(1)), s, 3, 3), &e)
	var chunk []byte
	for i := range 3 {
		chunk = append(chunk, e.row(i)...)
	}
	f.Add(chunk)
	f.Fuzz(func(t *testing.T, chunk []byte) {
		j := &windowHashJoin{sides: &[2]windowJoinSide{}}
		j.cols[0] = batch.NewBuilder(s)
		j.sides[0].codec = newRowCodec(s)
		if j.decode(0, chunk) == nil {
			_ = (&rowCollector{}).Emit(j.cols[0].Finish())
		}
	})
}
