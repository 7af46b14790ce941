package op

import (
	"encoding/binary"
	"fmt"

	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/exec"
	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/expr"
)

// overFuncs are the calls of ROW_NUMBER, RANK, DENSE_RANK and LAG in a window. They only go forward: their frame is
// everything up to the current row. The state of a partition is a value of a table of its own:
//
//	0   i64  rows seen: ROW_NUMBER
//	8   i64  RANK of the last row
//	16  i64  DENSE_RANK of the last row
//	24  uvarint length and bytes: order column of the last row, as in a state key
//	    per LAG: uvarint number of values, each uvarint length and bytes as in a state key, oldest first; at most
//	    offset+1; then uvarint length and bytes of the default of the last row
type overFuncs struct {
	calls  []expr.OverCall
	order  int // order column
	table  checkpoint.Table
	keys   *checkpoint.Keys
	refs   []checkpoint.Ref
	blob   []byte // state being computed
	next   []byte
	val    []byte
	values [][]byte // per call, of the last results: encoded value; LAG only
	ranks  []int64
}

const overFuncsHead = 24

// add adds a call and returns its index.
func (f *overFuncs) add(c expr.OverCall) int {
	f.calls = append(f.calls, c)
	f.values = append(f.values, nil)
	f.ranks = append(f.ranks, 0)
	return len(f.calls) - 1
}

func (f *overFuncs) open(s exec.Subtask, ttl int64) (err error) {
	if len(f.calls) == 0 {
		return nil
	}
	format := "over/1"
	for _, c := range f.calls {
		format += ";" + c.Agg.Text
		if c.Func == expr.OverLag {
			format += ":" + c.Agg.ArgType.String()
		}
	}
	f.table, err = s.Table(checkpoint.TableOptions{Name: "functions", Format: format, TTL: ttl})
	return err
}

func (f *overFuncs) begin(keys *checkpoint.Keys) error {
	if len(f.calls) == 0 {
		return nil
	}
	f.keys = keys
	f.refs = resize(f.refs, keys.Len())
	return f.table.Probe(keys, f.refs)
}

// step takes physical row r of b, row i of the batch, into its partition.
func (f *overFuncs) step(b *batch.Batch, i, r int) error {
	if len(f.calls) == 0 {
		return nil
	}
	ref := f.refs[i]
	if ref == checkpoint.NoRow {
		var err error
		// Also finds a row inserted earlier in this batch.
		if ref, _, err = f.table.Insert(f.keys, i, 0); err != nil {
			return err
		}
		f.refs[i] = ref
	}
	state, err := f.fold(f.table.Value(ref), b, r)
	if err != nil {
		return err
	}
	f.table.Set(ref, state)
	return nil
}

// fold is state with physical row r of b added. The result is valid until the next call.
func (f *overFuncs) fold(state []byte, b *batch.Batch, r int) ([]byte, error) {
	rows, rank, dense, last, rest, err := splitOverFuncs(state)
	if err != nil {
		return nil, err
	}
	f.val = exec.AppendColumn(f.val[:0], b.Cols[f.order], r)
	rows++
	if rows == 1 || string(last) != string(f.val) {
		rank, dense = rows, dense+1
	}
	out := f.next[:0]
	for _, n := range []int64{rows, rank, dense} {
		out = binary.LittleEndian.AppendUint64(out, uint64(n))
	}
	out = appendBytes(out, f.val)
	for k := range f.calls {
		c := &f.calls[k]
		if c.Func != expr.OverLag {
			continue
		}
		if out, rest, err = f.lag(out, rest, c, b, r); err != nil {
			return nil, err
		}
	}
	f.next, f.blob = f.blob, out
	return out, nil
}

// lag appends the state of a LAG after row r to out, given its state before at the beginning of old.
func (f *overFuncs) lag(out, old []byte, c *expr.OverCall, b *batch.Batch, r int) (state, rest []byte, err error) {
	n := uint64(0)
	if len(old) > 0 {
		w := 0
		if n, w = binary.Uvarint(old); w <= 0 {
			return nil, nil, errOverFuncs
		}
		old = old[w:]
	}
	keep := n
	if n > uint64(c.Offset) {
		keep = uint64(c.Offset)
	}
	out = binary.AppendUvarint(out, keep+1)
	for i := uint64(0); i < n; i++ {
		v, next, err := cutBytes(old)
		if err != nil {
			return nil, nil, err
		}
		if i >= n-keep {
			out = appendBytes(out, v)
		}
		old = next
	}
	if len(old) > 0 { // the default of the row before
		if _, old, err = cutBytes(old); err != nil {
			return nil, nil, err
		}
	}
	f.val = exec.AppendColumn(f.val[:0], b.Cols[c.Agg.Arg], r)
	out = appendBytes(out, f.val)
	f.val = f.val[:0]
	if c.Default >= 0 {
		f.val = exec.AppendColumn(f.val, b.Cols[c.Default], r)
	} else {
		f.val = append(f.val, 0)
	}
	return appendBytes(out, f.val), old, nil
}

// results computes the calls for the partition of row i of the batch.
func (f *overFuncs) results(i int) error {
	if len(f.calls) == 0 {
		return nil
	}
	return f.resultsOf(f.table.Value(f.refs[i]))
}

// resultsOf computes the calls for a state. The values are borrowed from it.
func (f *overFuncs) resultsOf(state []byte) error {
	rows, rank, dense, _, rest, err := splitOverFuncs(state)
	if err != nil {
		return err
	}
	for k := range f.calls {
		switch c := &f.calls[k]; c.Func {
		case expr.OverRowNumber:
			f.ranks[k] = rows
		case expr.OverRank:
			f.ranks[k] = rank
		case expr.OverDenseRank:
			f.ranks[k] = dense
		case expr.OverLag:
			n, w := binary.Uvarint(rest)
			if w <= 0 {
				return errOverFuncs
			}
			rest = rest[w:]
			for j := uint64(0); j <= n; j++ {
				var v []byte
				if v, rest, err = cutBytes(rest); err != nil {
					return err
				}
				// The oldest of offset+1 values, or the default behind fewer.
				if j == 0 && n == uint64(c.Offset)+1 || j == n && n <= uint64(c.Offset) {
					f.values[k] = v
				}
			}
		}
	}
	return nil
}

// append appends the last result of call k.
func (f *overFuncs) append(k int, col *batch.ColBuilder) error {
	if f.calls[k].Func != expr.OverLag {
		col.AppendI64(f.ranks[k])
		return nil
	}
	one := [1]*batch.ColBuilder{col}
	_, err := exec.DecodeKey(f.values[k], one[:])
	return err
}

var errOverFuncs = fmt.Errorf("the state of an OVER window is damaged")

func splitOverFuncs(state []byte) (rows, rank, dense int64, last, rest []byte, err error) {
	if len(state) == 0 {
		return 0, 0, 0, nil, nil, nil
	}
	if len(state) < overFuncsHead {
		return 0, 0, 0, nil, nil, errOverFuncs
	}
	last, rest, err = cutBytes(state[overFuncsHead:])
	return word(state, 0), word(state, 8), word(state, 16), last, rest, err
}

// appendBytes appends v behind its length.
func appendBytes(dst, v []byte) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(v))), v...)
}

// cutBytes is the inverse of appendBytes.
func cutBytes(b []byte) (v, rest []byte, err error) {
	n, w := binary.Uvarint(b)
	if w <= 0 || uint64(len(b)-w) < n {
		return nil, nil, errOverFuncs
	}
	return b[w : w+int(n)], b[w+int(n):], nil
}
