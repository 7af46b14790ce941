package op

import (
	"bytes"
	"encoding/binary"

	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/exec"
	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/types"
)

// topOne is the Top-1 of an append-only or upsert input (Flink: FastTop1Function): a table with the best row. Only a
// strictly better row replaces it, or, of an upsert input, another version of the same row.
type topOne struct {
	rankCore
	best checkpoint.Table // partition → uvarint length of the sort key, sort key, row
	at   []checkpoint.Ref
	id   *rankIDs // of an upsert input
	a, b []byte
	val  []byte
}

// Open implements exec.Operator.
func (t *topOne) Open(s exec.Subtask) (err error) {
	if err := t.open(s); err != nil {
		return err
	}
	if t.spec.Strategy == RankUpdate {
		t.id = newRankIDs(t.spec.Input, t.spec.UniqueKey)
	}
	t.best, err = s.Table(checkpoint.TableOptions{Name: "best", Format: "top1/1:" + rowFormat(t.spec.Input), TTL: t.spec.TTL})
	return err
}

// Process implements exec.Operator.
func (t *topOne) Process(_ int, b *batch.Batch, out exec.Emitter) error {
	if err := t.begin(b, out); err != nil {
		return err
	}
	t.at = resize(t.at, t.keys.Len())
	if err := t.best.Probe(&t.keys, t.at); err != nil {
		return err
	}
	for i := range t.at {
		r := b.Row(i)
		t.key = t.order.appendTo(t.key[:0], b, r)
		if t.at[i] == checkpoint.NoRow {
			ref, _, err := t.best.Insert(&t.keys, i, 0)
			if err != nil {
				return err
			}
			t.at[i] = ref
		}
		if err := t.offer(b, r, t.at[i]); err != nil {
			return err
		}
	}
	return flush(t.out, out)
}

func (t *topOne) offer(b *batch.Batch, r int, ref checkpoint.Ref) error {
	old := t.best.Value(ref)
	var key, row []byte
	if len(old) > 0 {
		key, row = splitTop(old)
		if bytes.Compare(t.key, key) >= 0 {
			same, err := t.same(b, r, row)
			if !same || err != nil {
				return err
			}
		}
	}
	t.row = appendRow(t.row[:0], b, r)
	var err error
	if len(old) == 0 {
		err = t.emit(t.row, 1, types.Insert)
	} else {
		err = t.update(row, t.row, 1)
	}
	t.val = binary.AppendUvarint(t.val[:0], uint64(len(t.key)))
	t.val = append(append(t.val, t.key...), t.row...)
	t.best.Set(ref, t.val)
	return err
}

// splitTop is sort key and row of a value in best.
func splitTop(v []byte) (key, row []byte) {
	n, w := binary.Uvarint(v)
	return v[w : w+int(n)], v[w+int(n):]
}

// same reports whether the row at hand, physical row r of b, is a version of the stored row.
func (t *topOne) same(b *batch.Batch, r int, row []byte) (same bool, err error) {
	if t.id == nil {
		return false, nil
	}
	t.a = t.id.enc.AppendKey(t.a[:0], b, r)
	t.b, err = t.id.append(t.b[:0], row)
	return bytes.Equal(t.a, t.b), err
}

// firstRank is the Top-N of an append-only input in the order of arrival: of every partition the first To rows pass,
// and their number is kept.
type firstRank struct {
	rankCore
	counts checkpoint.Table
	at     []checkpoint.Ref
}

// Open implements exec.Operator.
func (f *firstRank) Open(s exec.Subtask) (err error) {
	if err := f.open(s); err != nil {
		return err
	}
	f.counts, err = s.Table(checkpoint.TableOptions{Name: "counts", Format: "count/1", TTL: f.spec.TTL})
	return err
}

// Process implements exec.Operator.
func (f *firstRank) Process(_ int, b *batch.Batch, out exec.Emitter) error {
	if err := f.begin(b, out); err != nil {
		return err
	}
	f.at = resize(f.at, f.keys.Len())
	if err := f.counts.Probe(&f.keys, f.at); err != nil {
		return err
	}
	for i, ref := range f.at {
		r := b.Row(i)
		if err := f.limit(b, i, r); err != nil {
			return err
		}
		if ref == checkpoint.NoRow {
			var err error
			if ref, _, err = f.counts.Insert(&f.keys, i, 8); err != nil {
				return err
			}
		}
		place := word(f.counts.Value(ref), 0) + 1
		if place > f.to {
			continue
		}
		setWord(f.counts.Mutable(ref), 0, place)
		if !f.shows(place) {
			continue
		}
		for c, v := range b.Cols {
			f.out.Cols[c].AppendFrom(v, r)
		}
		if f.spec.Number {
			f.out.Cols[len(b.Cols)].AppendI64(place)
		}
		f.out.RowDone()
		if f.out.Full() {
			if err := flush(f.out, out); err != nil {
				return err
			}
		}
	}
	return flush(f.out, out)
}

// appendRank is the Top-N of an append-only input (Flink: AppendOnlyTopNFunction): of every partition the best To rows
// are kept.
type appendRank struct {
	rankCore
	rows  *multimap
	worst []byte
}

// Open implements exec.Operator.
func (a *appendRank) Open(s exec.Subtask) (err error) {
	if err := a.open(s); err != nil {
		return err
	}
	a.rows, err = openMultimap(s, "rows", "rank/1:"+rowFormat(a.spec.Input), a.spec.TTL)
	return err
}

// Process implements exec.Operator.
func (a *appendRank) Process(_ int, b *batch.Batch, out exec.Emitter) error {
	if err := a.begin(b, out); err != nil {
		return err
	}
	if err := a.rows.probe(&a.keys); err != nil {
		return err
	}
	for i := range a.keys.Ends {
		if err := a.take(b, i, b.Row(i)); err != nil {
			return err
		}
		if err := a.offer(a.rows.at(i)); err != nil {
			return err
		}
	}
	if err := a.rows.done(); err != nil {
		return err
	}
	return flush(a.out, out)
}

func (a *appendRank) offer(b bucket) error {
	n, err := b.len()
	if err != nil {
		return err
	}
	full := int64(n) >= a.to
	if full {
		if a.to <= 0 {
			return nil
		}
		sub, row, _, err := b.last()
		// The number of arrival makes an equal row the worse one.
		if err != nil || bytes.Compare(a.key, sub) > 0 {
			return err
		}
		a.worst = append(a.worst[:0], sub...)
		if !a.shifts {
			if err := a.emit(row, a.to, types.Delete); err != nil {
				return err
			}
		}
	}
	if err := a.enter(b); err != nil {
		return err
	}
	if full {
		if _, err := b.remove(a.worst); err != nil {
			return err
		}
	}
	return b.put(a.key, a.row)
}
