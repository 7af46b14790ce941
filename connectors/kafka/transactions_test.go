package kafka

import (
	"slices"
	"testing"
	"time"

	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/connectors"
)

// What a job that is gone left on the broker is found under its prefix; one transaction is what the committable stands
// for and is committed, the other is aborted, each without touching the other.
func TestTransactionsLeftByAJob(t *testing.T) {
	everywhere(t, func(t *testing.T, e *env) {
		topic := e.topic(t, 1)
		s := openSink(t, e.table(topic, idCols), "s", 1, job(topic))
		must(t, committerOf(t, s).Abort(testCtx(t), nil))
		w := openWriters(t, s)[0].(*writer)
		must(t, w.Write(testCtx(t), ids(0, 10)))
		cs, err := w.PreCommit(testCtx(t), 1)
		must(t, err)
		must(t, w.Write(testCtx(t), ids(10, 20)))
		must(t, w.cur.cl.Flush(testCtx(t)))
		prefix := s.owner.prefix
		vanish(w.group)

		x, err := openTransactions(e.table(topic, idCols), "", nil)
		must(t, err)
		defer x.Close()
		list := func() (out []connectors.Txn) {
			all, err := x.List(testCtx(t), []string{prefix})
			must(t, err)
			for _, l := range all {
				if prefixOf(l.ID) == prefix && !l.Final {
					out = append(out, l)
				}
			}
			return out
		}
		if l := list(); len(l) != 2 || l[0].Live == "" || l[0].State != "Ongoing" || l[0].Timeout <= 0 || time.Since(l[0].Started) > time.Hour {
			t.Fatalf("while the owner lives: %+v", l)
		}
		s.owner.release("s")
		left := list()
		if len(left) != 2 || left[0].Live != "" {
			t.Fatalf("when it is gone: %+v", left)
		}
		id, ok := x.Identity(&cs[0])
		i := slices.IndexFunc(left, func(l connectors.Txn) bool { return l.Identity == id })
		if !ok || i < 0 {
			t.Fatalf("%s is not among %+v", id, left)
		}
		if o, why, err := x.Outcome(testCtx(t), &cs[0]); err != nil || o != checkpoint.OutcomeOpen {
			t.Fatalf("%v %s %v", o, why, err)
		}
		must(t, x.Abort(testCtx(t), &left[1-i]))
		must(t, x.Commit(testCtx(t), &cs[0]))
		must(t, x.Commit(testCtx(t), &cs[0]))
		must(t, x.Abort(testCtx(t), &left[1-i])) // it has ended
		must(t, x.Abort(testCtx(t), &left[i]))   // so has this one: nothing happens
		waitFor(t, func() bool { return len(e.read(t, topic, true)) == 10 })
		equalUnordered(t, "rows", values(e.read(t, topic, true)), idJSON(0, 10))
		if l := list(); len(l) > 0 {
			t.Errorf("left over: %+v", l)
		}
		if o, why, err := x.Outcome(testCtx(t), &cs[0]); err != nil || o != checkpoint.OutcomeCommitted {
			t.Errorf("%v %s %v", o, why, err)
		}
	})
}
