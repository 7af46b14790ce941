package kafka

import (
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/connectors"
	"github.com/streamsql/streamsql/sql/diag"
)

// A request to end a transaction that comes as late as can be, while a later transaction of the same id is written, is refused,
// with either protocol, and the later one stays open until its own commit.
func TestLateEndTxn(t *testing.T) { everywhere(t, lateEndTxn) }

func lateEndTxn(t *testing.T, e *env) {
	topic := e.topic(t, 1)
	s := openSink(t, e.table(topic, idCols, "sink.transactional-id-slots", "3"), "s", 1, job(topic))
	c := committerOf(t, s)
	must(t, c.Abort(testCtx(t), nil))
	w := openWriters(t, s)[0].(*writer)
	former := map[string]txnRef{}
	last, again := checkpoint.ID(9), 0
	for id := checkpoint.ID(1); id <= last; id++ {
		must(t, w.Write(testCtx(t), ids(int(id), int(id)+1)))
		must(t, w.cur.cl.Flush(testCtx(t)))
		if old, ok := former[w.cur.id]; ok {
			adm, err := c.(*committer).adm.get(old.tv)
			must(t, err)
			for _, commit := range []bool{true, false, true} {
				if err := endTxn(testCtx(t), adm, &old, commit); !errors.Is(err, kerr.ProducerFenced) && !errors.Is(err, kerr.InvalidProducerEpoch) {
					t.Fatalf("ending the transaction of checkpoint %d once more (commit %t) while %s is written to for checkpoint %d: %v", old.ckpt, commit, old.id, id, err)
				}
			}
			if got := values(e.read(t, topic, true)); slices.Contains(got, idJSON(int(id), int(id)+1)[0]) {
				t.Fatalf("the row of checkpoint %d is visible before its commit: %v", id, got)
			}
			again++
		}
		commitCheckpoint(t, c, w, id, former)
	}
	waitFor(t, func() bool { return len(e.read(t, topic, true)) == int(last) })
	equalUnordered(t, "rows", values(e.read(t, topic, true)), idJSON(1, int(last)+1))
	if again < int(last)-3 { // which of the three is taken next depends on when it is ready
		t.Errorf("%d of %d transactions had an id of an earlier one", again, last)
	}
}

// commitCheckpoint takes w through checkpoint id, and notes what was committed by its transactional id.
func commitCheckpoint(t *testing.T, c checkpoint.Committer, w connectors.Writer, id checkpoint.ID, refs map[string]txnRef) {
	t.Helper()
	cs, err := w.PreCommit(testCtx(t), id)
	must(t, err)
	for i := range cs {
		ref, err := decodeTxnRef(cs[i].Payload)
		must(t, err)
		refs[ref.id] = ref
	}
	must(t, c.Commit(testCtx(t), cs))
	must(t, w.Committed(testCtx(t), id))
}

// inState counts the group's ids in a state.
func inState(g *txnGroup, want slotState) (n int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, s := range g.slots {
		if s.state == want {
			n++
		}
	}
	return n
}

// Below transaction.version 2 an id that the broker does not initialise at once is asked for again; one that it refuses is used no more,
// and so is one of a process that was replaced, which asks the broker for nothing. From version 2 on no id is ever initialised again.
func TestRenew(t *testing.T) {
	type renewal struct {
		s      *sink
		c      checkpoint.Committer
		w      *writer
		inits  atomic.Int64 // after the start
		answer atomic.Int32 // to InitProducerId: an error code, 0 = the broker's own
		owned  atomic.Bool
		next   checkpoint.ID
	}
	begin := func(t *testing.T, tv int8, slots string) *renewal {
		r, e := &renewal{}, fake(t, tv)
		topic := e.topic(t, 1)
		j := job(topic)
		r.owned.Store(true)
		j.Owned = func() error {
			if r.owned.Load() {
				return nil
			}
			return diag.New(diag.Conflict, diag.Pos{}, "taken over")
		}
		r.s = openSink(t, e.table(topic, idCols, "sink.transactional-id-slots", slots), "s", 1, j)
		r.c = committerOf(t, r.s)
		must(t, r.c.Abort(testCtx(t), nil))
		r.w = openWriters(t, r.s)[0].(*writer)
		e.fake.ControlKey(int16(kmsg.InitProducerID), func(kreq kmsg.Request) (kmsg.Response, error, bool) {
			e.fake.KeepControl()
			r.inits.Add(1)
			code := r.answer.Load()
			if code == 0 {
				return nil, nil, false
			}
			resp := kreq.ResponseKind().(*kmsg.InitProducerIDResponse)
			resp.ErrorCode = int16(code)
			return resp, nil, true
		})
		return r
	}
	checkpoints := func(t *testing.T, r *renewal, n int) (err error) {
		for range n {
			r.next++
			if err := r.w.Write(testCtx(t), ids(int(r.next), int(r.next)+1)); err != nil {
				return err
			}
			commitCheckpoint(t, r.c, r.w, r.next, map[string]txnRef{})
		}
		return nil
	}
	t.Run("goes on", func(t *testing.T) {
		r := begin(t, 1, "3")
		must(t, checkpoints(t, r, 12))
		if n := r.inits.Load(); n < 9 {
			t.Errorf("%d ids were initialised for 12 checkpoints on 3 ids", n)
		}
	})
	t.Run("version 2", func(t *testing.T) {
		r := begin(t, 2, "3")
		must(t, checkpoints(t, r, 12))
		if n := r.inits.Load(); n != 0 {
			t.Errorf("%d ids were initialised while the job ran", n)
		}
	})
	t.Run("asked again", func(t *testing.T) {
		r := begin(t, 1, "3")
		must(t, checkpoints(t, r, 1))
		r.answer.Store(int32(kerr.UnknownServerError.Code))
		must(t, checkpoints(t, r, 1)) // the id of checkpoint 1 is let go
		waitFor(t, func() bool { return r.inits.Load() > 2 })
		if inState(r.w.group, slotRenewing) != 1 {
			t.Error("no id waits for its initialisation")
		}
		must(t, checkpoints(t, r, 1)) // on the third id: nothing waits
		r.answer.Store(0)
		must(t, checkpoints(t, r, 6))
	})
	t.Run("refused", func(t *testing.T) {
		r := begin(t, 1, "4")
		r.answer.Store(int32(kerr.TransactionalIDAuthorizationFailed.Code))
		must(t, checkpoints(t, r, 3))
		waitFor(t, func() bool { return inState(r.w.group, slotBurned) == 2 })
		if err := checkpoints(t, r, 3); diag.CodeOf(err) != diag.External || !strings.Contains(err.Error(), "too few usable transactional ids") {
			t.Errorf("with two ids left: %v", err)
		}
	})
	t.Run("replaced", func(t *testing.T) {
		r := begin(t, 1, "5")
		r.owned.Store(false)
		must(t, checkpoints(t, r, 3))
		waitFor(t, func() bool { return inState(r.w.group, slotBurned) == 2 })
		if n := r.inits.Load(); n != 0 {
			t.Errorf("a process that was replaced initialised %d ids", n)
		}
	})
	t.Run("stopped", func(t *testing.T) { // closing does not wait for a broker that does not answer
		r := begin(t, 1, "3")
		r.answer.Store(int32(kerr.UnknownServerError.Code))
		must(t, checkpoints(t, r, 2))
		waitFor(t, func() bool { return r.inits.Load() > 0 })
		must(t, r.w.Close())
		must(t, r.s.Close())
	})
}
