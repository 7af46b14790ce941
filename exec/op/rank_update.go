package op

import (
	"bytes"

	"github.com/streamsql/streamsql/exec"
	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/types"
)

// updateRank is the Top-N of an upsert input whose rows only get better (Flink: UpdatableTopNFunction): of every
// partition the best To rows are kept, found by their unique key too. Kinds of the input are not looked at.
type updateRank struct {
	rankCore
	rows   *multimap
	id     *rankIDs
	idKey  []byte // sub-key of the row at hand's unique key
	oldKey []byte // sub-key of another row
	oldID  []byte
}

// Open implements exec.Operator.
func (u *updateRank) Open(s exec.Subtask) (err error) {
	if err := u.open(s); err != nil {
		return err
	}
	u.id = newRankIDs(u.spec.Input, u.spec.UniqueKey)
	u.rows, err = openMultimap(s, "rows", "rank-update/1:"+rowFormat(u.spec.Input), u.spec.TTL)
	return err
}

// Process implements exec.Operator.
func (u *updateRank) Process(_ int, b *batch.Batch, out exec.Emitter) error {
	if err := u.begin(b, out); err != nil {
		return err
	}
	if err := u.rows.probe(&u.keys); err != nil {
		return err
	}
	for i := range u.keys.Ends {
		r := b.Row(i)
		if err := u.take(b, i, r); err != nil {
			return err
		}
		u.idKey = u.id.enc.AppendKey(append(u.idKey[:0], rankKeys), b, r)
		if err := u.offer(u.rows.at(i)); err != nil {
			return err
		}
	}
	if err := u.rows.done(); err != nil {
		return err
	}
	return flush(u.out, out)
}

func (u *updateRank) offer(b bucket) error {
	at, known, err := b.get(u.idKey)
	if err != nil {
		return err
	}
	if !known {
		return u.add(b)
	}
	u.oldKey = append(u.oldKey[:0], at...)
	old, ok, err := b.get(u.oldKey)
	if err != nil {
		return err
	}
	if !ok { // it expired
		if _, err := b.remove(u.idKey); err != nil {
			return err
		}
		return u.add(b)
	}
	if bytes.Equal(sortOf(u.oldKey), sortOf(u.key)) {
		u.key = append(u.key[:0], u.oldKey...) // it keeps its place
	}
	if err := u.move(b, old); err != nil {
		return err
	}
	if !bytes.Equal(u.key, u.oldKey) {
		if _, err := b.remove(u.oldKey); err != nil {
			return err
		}
		if err := b.put(u.idKey, u.key); err != nil {
			return err
		}
	}
	return b.put(u.key, u.row)
}

// move emits the changes of a row that is a new version of old.
func (u *updateRank) move(b bucket, old []byte) error {
	if !u.shifts {
		return u.update(old, u.row, 1)
	}
	if bytes.Compare(u.key, u.oldKey) <= 0 {
		return u.rise(b, old)
	}
	// The planner's promise that rows get better was wrong, as with SUM over values it took for positive: the rows
	// between move up. What had been pushed out before is not known any more.
	place, err := u.placeOf(b, u.oldKey)
	if err != nil {
		return err
	}
	var failed error
	cur := old
	err = b.ascend(u.oldKey, func(sub, row []byte) bool {
		if bytes.Equal(sub, u.oldKey) {
			return true
		}
		if sub[0] != rankRows || bytes.Compare(sub, u.key) > 0 {
			return false
		}
		failed = u.update(cur, row, place)
		cur, place = row, place+1
		return failed == nil
	})
	if err == nil {
		err = failed
	}
	if err != nil {
		return err
	}
	return u.update(cur, u.row, place)
}

// rise emits the changes of a row that is a better version of old: the rows between the two places move down. As in
// Flink the -U of both places come before the first +U.
func (u *updateRank) rise(b bucket, old []byte) error {
	place, err := u.placeOf(b, u.key)
	if err != nil {
		return err
	}
	at, err := u.placeOf(b, u.oldKey)
	if err != nil {
		return err
	}
	if at == place {
		return u.update(old, u.row, place)
	}
	var failed error
	cur, first := u.row, true
	err = b.ascend(u.key, func(sub, row []byte) bool {
		if bytes.Equal(sub, u.oldKey) {
			return false
		}
		failed = u.before(row, place)
		if failed == nil && first {
			failed, first = u.before(old, at), false
		}
		if failed == nil {
			failed = u.emit(cur, place, types.UpdateAfter)
		}
		cur, place = row, place+1
		return failed == nil
	})
	if err == nil {
		err = failed
	}
	if err != nil {
		return err
	}
	return u.emit(cur, at, types.UpdateAfter)
}

// before emits the -U of a row at a place, if it is asked for.
func (u *updateRank) before(row []byte, place int64) error {
	if !u.spec.EmitUpdateBefore {
		return nil
	}
	return u.emit(row, place, types.UpdateBefore)
}

// add emits and keeps a row of a key that is not among the best.
func (u *updateRank) add(b bucket) error {
	n, err := b.len()
	if err != nil {
		return err
	}
	full := int64(n/2) >= u.to
	if full {
		worst, err := u.worst(b)
		if worst == nil || err != nil {
			return err
		}
		if !u.shifts {
			if err := u.emit(worst, u.to, types.Delete); err != nil {
				return err
			}
		}
	}
	if err := u.enter(b); err != nil {
		return err
	}
	if full {
		for _, sub := range [][]byte{u.oldKey, u.oldID} {
			if _, err := b.remove(sub); err != nil {
				return err
			}
		}
	}
	if err := b.put(u.key, u.row); err != nil {
		return err
	}
	return b.put(u.idKey, u.key)
}

// worst is the row that the row at hand pushes out, nil when it is not better than any. oldKey and oldID are then its
// sub-keys.
func (u *updateRank) worst(b bucket) (worst []byte, err error) {
	err = b.descend(rowsEnd, func(sub, row []byte) bool {
		if bytes.Compare(u.key, sub) < 0 {
			u.oldKey, worst = append(u.oldKey[:0], sub...), row
		}
		return false
	})
	if worst == nil || err != nil {
		return nil, err
	}
	u.oldID, err = u.id.append(append(u.oldID[:0], rankKeys), worst)
	return worst, err
}

// rowsEnd is behind the rows in a bucket.
var rowsEnd = []byte{rankRows + 1}
