package kafka

import (
	"context"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/streamsql/streamsql/sql/batch"
)

// upsertBuffer holds the last change of each key ('sink.buffer-flush.*'). It is flushed when it holds maxRows keys,
// when rows arrive after interval, and at every barrier: what it holds is never part of a checkpoint. Keys keep the
// order of their first change.
type upsertBuffer struct {
	maxRows  int
	interval time.Duration
	rows     map[string]bufferedRow
	next     int
	first    time.Time // when the oldest row came
}

type bufferedRow struct {
	order int
	rec   kgo.Record
}

// bufferRows takes the slab's records in and gives the slab back.
func (w *writer) bufferRows(ctx context.Context, b *batch.Batch, sl *slab) error {
	u := w.buffer
	for i := range sl.recs {
		r := sl.recs[i]
		old, ok := u.rows[string(r.Key)]
		row := bufferedRow{order: u.next, rec: r}
		if ok {
			row.order = old.order
		} else {
			u.next++
		}
		row.rec.Key, row.rec.Value = slices.Clone(r.Key), slices.Clone(r.Value)
		if len(u.rows) == 0 {
			u.first = time.Now()
		}
		u.rows[string(r.Key)] = row
		if len(u.rows) >= u.maxRows {
			if err := w.flushBuffer(ctx); err != nil {
				return err
			}
		}
	}
	sl.left.Store(1)
	sl.release(1)
	if len(u.rows) > 0 && time.Since(u.first) >= u.interval {
		return w.flushBuffer(ctx)
	}
	return nil
}

// flushBuffer produces what is buffered.
func (w *writer) flushBuffer(ctx context.Context) error {
	u := w.buffer
	if len(u.rows) == 0 {
		return nil
	}
	rows := make([]bufferedRow, 0, len(u.rows))
	for _, r := range u.rows {
		rows = append(rows, r)
	}
	slices.SortFunc(rows, func(a, b bufferedRow) int { return a.order - b.order })
	sl := w.s.slabs.get(len(rows))
	for i := range rows {
		sl.recs[i] = rows[i].rec
	}
	clear(u.rows)
	u.next = 0
	return w.produce(ctx, sl)
}
