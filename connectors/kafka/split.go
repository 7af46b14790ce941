package kafka

import (
	"context"
	"fmt"
	"iter"

	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/connectors"
)

// 'sink.transaction.max-bytes': the rows of one checkpoint in several transactions. They are pre-committed, listed and committed
// together, in the order they were begun, but each commit is a step of its own: a reader may see the first of them for a
// moment before the others, and one that times out between two commits cannot be made up for by going back.
//
// The pool of ids bounds them. A checkpoint gets its share of it: the pool serves those in flight, the one that is committed but still
// listed, and one transaction more, which is being written. Beyond that a transaction grows, so that no row waits for an id that
// only its own checkpoint could set free.

// bytes is what the slab's records carry.
func (b *slab) bytes() (n int64) {
	for i := range b.recs {
		n += int64(len(b.recs[i].Key) + len(b.recs[i].Value))
	}
	return n
}

// split lets the writer go on in another transaction of its epoch, or in the same where no id can be spared.
func (w *writer) split(ctx context.Context) error {
	next, err := w.group.split(ctx, &w.member, w.cur)
	if err != nil || next == w.cur {
		return err
	}
	// As behind a barrier: what goes through another producer must not overtake.
	if err := w.cur.cl.Flush(ctx); err != nil {
		return fmt.Errorf("kafka sink: flushing transaction %s: %w", w.cur.id, err)
	}
	w.cur = next
	return nil
}

// split is the transaction behind cur in m's epoch: the one that another writer has begun, or a new one, or cur.
func (g *txnGroup) split(ctx context.Context, m *member, cur *slot) (*slot, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if s := g.open[m.after]; s != cur {
		return s, nil
	}
	var spare *slot
	free := 0
	for _, s := range g.slots {
		if s.state == slotFree {
			spare = s
			free++
		}
	}
	if free <= g.flight || 1+len(g.full[m.after]) >= share(len(g.slots), g.flight) {
		if g.grown != cur.turn {
			g.grown = cur.turn
			g.log.Warn("kafka: a transaction grows beyond its size, no transactional id can be spared", "id", cur.id, "bytes", cur.bytes.Load(),
				"hint", "raise '"+slotsOption+"' or '"+splitOption+"', or checkpoint more often")
		}
		return cur, nil
	}
	if err := g.begin(ctx, spare, m.after); err != nil {
		return nil, err
	}
	g.full[m.after] = append(g.full[m.after], cur)
	return spare, nil
}

// share is how many transactions one checkpoint may have on a pool of slots ids with flight checkpoints at a time.
func share(slots, flight int) int { return (slots - 1) / (flight + 1) }

// written are the transactions that writers may still add to, by the barrier their rows come after. The caller holds the lock.
func (g *txnGroup) written() iter.Seq2[checkpoint.ID, *slot] {
	return func(yield func(checkpoint.ID, *slot) bool) {
		for e, s := range g.open {
			if !yield(e, s) {
				return
			}
		}
		for e, list := range g.full {
			for _, s := range list {
				if !yield(e, s) {
					return
				}
			}
		}
	}
}

// checkSplit refuses sizes and pools that could not work.
func (x *table) checkSplit() error {
	if !x.v.Has(splitOption) {
		return nil
	}
	if x.guarantee() != "exactly-once" {
		return x.fail(splitOption, "option '%s' has no effect with 'sink.delivery-guarantee' = '%s'", splitOption, x.guarantee()).WithHint("remove one of the two options")
	}
	if x.v.Memory(splitOption) <= 0 {
		return x.fail(splitOption, "option '%s' must be more than 0", splitOption).WithHint("remove it for one transaction per checkpoint")
	}
	if n := x.v.Int(slotsOption); share(int(n), 1) < 2 {
		return x.fail(splitOption, "option '%s' needs more than %d transactional ids", splitOption, n).
			WithDetail("each transaction of a checkpoint needs an id of its own until the checkpoint after").
			WithHint("set '%s' to 2 × the transactions per checkpoint + 1, at least 5", slotsOption)
	}
	return nil
}

// splitting adds to m what EXPLAIN says of split transactions.
func (x *table) splitting(m *connectors.SinkMode) {
	if !x.v.Has(splitOption) {
		return
	}
	m.Reason += "; a transaction of " + x.v.String(splitOption) + " is followed by another one of the same checkpoint ('" + splitOption + "')"
	part := "the transactions of one checkpoint are committed one after the other: for a moment a reader can see a part of its rows, and one that is ended in between is not made up for by going back ('" + splitOption + "')"
	if m.Weakness != "" {
		part = m.Weakness + "; " + part
	}
	m.Weakness = part
	m.Commit.Most = int(x.v.Int(slotsOption))
}
