package op

import (
	"bytes"
	"encoding/binary"

	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/exec"
	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/types"
)

// retractRank is the Top-N of any input (Flink: RetractableTopNFunction): all rows are kept, so that the next one is known
// when one of the best leaves. A retraction of a row that is not there, because it has expired, is counted and ignored.
type retractRank struct {
	rankCore
	rows    *multimap
	missing *exec.Counter
	hashed  bool // rows are all equal in the order: they are found by a hash
	sub     []byte
	found   []byte // sub-key of the row to retract
	edge    []byte // sub-key of the row at the last place
	next    []byte // sub-key of the row that takes that place
}

// Open implements exec.Operator.
func (t *retractRank) Open(s exec.Subtask) (err error) {
	if err := t.open(s); err != nil {
		return err
	}
	t.hashed = len(t.spec.Order) == 0
	t.missing = s.Counter("rank-missing")
	t.rows, err = openMultimap(s, "rows", "rank-retract/1:"+rowFormat(t.spec.Input), t.spec.TTL)
	return err
}

// Process implements exec.Operator.
func (t *retractRank) Process(_ int, b *batch.Batch, out exec.Emitter) error {
	if err := t.begin(b, out); err != nil {
		return err
	}
	if err := t.rows.probe(&t.keys); err != nil {
		return err
	}
	for i := range t.keys.Ends {
		r := b.Row(i)
		if err := t.take(b, i, r); err != nil {
			return err
		}
		change := t.add
		if b.Kind(r).IsRetract() {
			change = t.retract
		}
		if err := change(t.rows.at(i)); err != nil {
			return err
		}
	}
	if err := t.rows.done(); err != nil {
		return err
	}
	return flush(t.out, out)
}

var rankEdgeKey = []byte{rankEdge}

// findEdge looks up the row at the last place; edge is then its sub-key, and full is false when there are fewer rows.
// Without a TTL the sub-key is kept in state, so that it need not be counted for.
func (t *retractRank) findEdge(b bucket) (full bool, row []byte, err error) {
	if t.spec.TTL > 0 {
		return t.countEdge(b)
	}
	at, full, err := b.get(rankEdgeKey)
	if err != nil || !full {
		return false, nil, err
	}
	t.edge = append(t.edge[:0], at...)
	row, full, err = b.get(t.edge)
	return full, row, err
}

func (t *retractRank) countEdge(b bucket) (full bool, row []byte, err error) {
	n := t.to
	err = b.ascend(nil, func(sub, r []byte) bool {
		if sub[0] != rankRows {
			return false
		}
		if n--; n == 0 {
			t.edge, row = append(t.edge[:0], sub...), r
		}
		return n > 0
	})
	return row != nil, row, err
}

// add emits the changes of the row at hand coming in, and keeps it.
func (t *retractRank) add(b bucket) error {
	if t.shifts || t.to <= 0 {
		if err := t.enter(b); err != nil {
			return err
		}
		return t.put(b)
	}
	full, worst, err := t.findEdge(b)
	if err != nil {
		return err
	}
	if full {
		if bytes.Compare(t.key, t.edge) > 0 {
			return t.put(b)
		}
		if err := t.emit(worst, 1, types.Delete); err != nil {
			return err
		}
	}
	if err := t.enter(b); err != nil {
		return err
	}
	if err := t.put(b); err != nil || t.spec.TTL > 0 {
		return err
	}
	if !full {
		n, err := b.len()
		if t.hashed {
			n /= 2
		}
		if err != nil || int64(n) < t.to {
			return err
		}
		t.edge = append(t.edge[:0], rankRows+1)
	}
	err = b.descend(t.edge, func(sub, _ []byte) bool {
		t.next = append(t.next[:0], sub...)
		return false
	})
	if err != nil {
		return err
	}
	return b.put(rankEdgeKey, t.next)
}

func (t *retractRank) put(b bucket) error {
	if t.hashed {
		if err := b.put(t.sameKey(t.key), nil); err != nil {
			return err
		}
	}
	return b.put(t.key, t.row)
}

func (t *retractRank) retract(b bucket) error {
	old, err := t.find(b)
	if err != nil {
		return err
	}
	if old == nil {
		t.missing.Add(1)
		return nil
	}
	if t.shifts {
		err = t.leave(b, old)
	} else {
		err = t.retractOut(b, old)
	}
	if err != nil {
		return err
	}
	if t.hashed {
		if _, err := b.remove(t.sameKey(t.found)); err != nil {
			return err
		}
	}
	_, err = b.remove(t.found)
	return err
}

// retractOut emits the row that leaves and the one that comes in for it.
func (t *retractRank) retractOut(b bucket, old []byte) error {
	full, _, err := t.findEdge(b)
	if err != nil || full && bytes.Compare(t.found, t.edge) > 0 || t.to <= 0 {
		return err
	}
	if err := t.emit(old, 1, types.Delete); err != nil || !full {
		return err
	}
	var next []byte
	err = b.ascend(t.edge, func(sub, row []byte) bool {
		if bytes.Equal(sub, t.edge) {
			return true
		}
		if sub[0] == rankRows {
			t.next, next = append(t.next[:0], sub...), row
		}
		return false
	})
	if err == nil && next != nil {
		err = t.emit(next, 1, types.Insert)
	}
	if err != nil || t.spec.TTL > 0 {
		return err
	}
	if next == nil {
		_, err = b.remove(rankEdgeKey)
		return err
	}
	return b.put(rankEdgeKey, t.next)
}

// leave emits the changes when the row found leaves: those behind it move up.
func (t *retractRank) leave(b bucket, old []byte) error {
	place, err := t.placeOf(b, t.found)
	if err != nil {
		return err
	}
	var failed error
	cur := old
	err = b.ascend(t.found, func(sub, row []byte) bool {
		if bytes.Equal(sub, t.found) {
			return true
		}
		if sub[0] != rankRows || place > t.to {
			return false
		}
		failed = t.update(cur, row, place)
		cur, place = row, place+1
		return failed == nil
	})
	if err == nil {
		err = failed
	}
	if err != nil {
		return err
	}
	return t.emit(cur, place, types.Delete)
}

// find looks for the oldest row that equals the row at hand; found is then its sub-key. The row is borrowed.
func (t *retractRank) find(b bucket) (row []byte, err error) {
	if t.hashed {
		return t.findHashed(b)
	}
	prefix := sortOf(t.key)
	err = b.ascend(prefix, func(sub, r []byte) bool {
		if !bytes.HasPrefix(sub, prefix) {
			return false
		}
		if bytes.Equal(r, t.row) {
			t.found, row = append(t.found[:0], sub...), r
		}
		return row == nil
	})
	return row, err
}

func (t *retractRank) findHashed(b bucket) (row []byte, err error) {
	prefix := t.sameKey(t.key)
	prefix = prefix[:len(prefix)-seqSize]
	var failed error
	err = b.ascend(prefix, func(sub, _ []byte) bool {
		if !bytes.HasPrefix(sub, prefix) {
			return false
		}
		t.found = append(append(t.found[:0], rankRows), sub[len(sub)-seqSize:]...)
		r, ok, err := b.get(t.found)
		if failed = err; ok && bytes.Equal(r, t.row) {
			row = r
		}
		return row == nil && failed == nil
	})
	if err == nil {
		err = failed
	}
	return row, err
}

// sameKey is the sub-key under rankSame of a row that equals the row at hand and has the given sub-key.
func (t *retractRank) sameKey(key []byte) []byte {
	t.sub = binary.BigEndian.AppendUint64(append(t.sub[:0], rankSame), checkpoint.HashKey(t.row))
	t.sub = append(t.sub, key[len(key)-seqSize:]...)
	return t.sub
}
