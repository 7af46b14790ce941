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
}

// Open implements exec.Operator.
func (t *retractRank) Open(s exec.Subtask) (err error) {
	if err := t.open(s); err != nil {
		return err
	}
	t.hashed = len(t.spec.Order) == 0
	t.missing = s.Counter("rank-missing")
	t.rows, err = openMultimap(s, "rows", "rank/1:"+rowFormat(t.spec.Input), t.spec.TTL)
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

// count is the number of rows of a partition.
func (t *retractRank) count(b bucket) (int64, error) {
	n, err := b.len()
	if t.hashed {
		n /= 2
	}
	return int64(n), err
}

func (t *retractRank) add(b bucket) error {
	if err := t.addOut(b); err != nil {
		return err
	}
	if t.hashed {
		if err := b.put(t.sameKey(t.key), nil); err != nil {
			return err
		}
	}
	return b.put(t.key, t.row)
}

// addOut emits the changes of the row at hand coming in.
func (t *retractRank) addOut(b bucket) error {
	if t.shifts {
		return t.enter(b)
	}
	n, err := t.count(b)
	if err != nil {
		return err
	}
	if n >= t.to {
		_, at, row, err := t.atPlace(b, t.to)
		if err != nil || row == nil || bytes.Compare(t.key, at) > 0 {
			return err
		}
		if err := t.emit(row, t.to, types.Delete); err != nil {
			return err
		}
	}
	return t.enter(b)
}

// atPlace is the row at a place, nil when there are fewer, and whether found is before it.
func (t *retractRank) atPlace(b bucket, place int64) (before bool, at, row []byte, err error) {
	err = b.ascend(nil, func(sub, r []byte) bool {
		if sub[0] != rankRows || place <= 0 {
			return false
		}
		if place--; place == 0 {
			at, row = sub, r
			return false
		}
		before = before || bytes.Equal(sub, t.found)
		return true
	})
	return before, at, row, err
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
	in, _, next, err := t.atPlace(b, t.to+1)
	if err != nil || !in {
		return err
	}
	if err := t.emit(old, 1, types.Delete); err != nil || next == nil {
		return err
	}
	return t.emit(next, 1, types.Insert)
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
