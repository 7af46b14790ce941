package kafka

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/sql/diag"
)

// aheadCommitter writes the records that checkpoints keep. Every step may be repeated:
//
//	initialise the ids ── which ends every transaction on them and fences who began it
//	own?               ── a later incarnation that takes the job over initialises them after this and fences us in turn
//	read the markers   ── nothing of these ids can become visible any more without us
//	write what has no marker, rows and marker in one transaction
//
// An answer that does not come, or that says that somebody else initialised the id, means to start over.
type aheadCommitter struct {
	c    *committer
	logs map[string]*markerLog // by topic
	cl   *kgo.Client           // for reading markers; nil until needed
	keep time.Duration         // markers younger than this stay
	// swept is set by Abort: of what had no marker then, only kept may still be committed. The records exist in checkpoints
	// alone, so that the brokers have nothing to say about one that was given up. A committer is of one attempt of the job.
	swept bool
	kept  map[markerID]bool
}

// aheadItem is a committable with its payload decoded.
type aheadItem struct {
	ref  aheadRef
	mark markerID
}

func (a *aheadCommitter) items(ctx context.Context, cs []checkpoint.Committable) ([]aheadItem, error) {
	out := make([]aheadItem, len(cs))
	for i := range cs {
		ref, err := decodeAhead(cs[i].Payload)
		if err != nil {
			return nil, err
		}
		if err := a.c.sameCluster(ctx, ref.clusterID, ref.bootstrap, ref.String()); err != nil {
			return nil, err
		}
		out[i] = aheadItem{ref, markerOf(&cs[i])}
	}
	return out, nil
}

// log brings what is known of the markers of a payload up to date. A topic that is gone or another one than that the
// payload names cannot tell anything.
func (a *aheadCommitter) log(ctx context.Context, ref *aheadRef) (l *markerLog, why string, err error) {
	if a.cl == nil {
		if a.cl, err = connect(ctx, a.c.s.c); err != nil {
			return nil, "", a.c.s.at(err)
		}
	}
	if l = a.logs[ref.markers]; l == nil {
		l = newMarkerLog(ref.markers)
		a.logs[ref.markers] = l
	}
	for wait := 50 * time.Millisecond; ; wait = min(2*wait, time.Second) {
		err = l.read(ctx, a.cl, a.c.s.log)
		switch {
		case errors.Is(err, errNoMarkers):
			return nil, "the marker topic " + ref.markers + " does not exist", nil
		case err == nil && ref.markersID != [16]byte{} && l.id != [16]byte{} && ref.markersID != l.id:
			return nil, "the marker topic " + ref.markers + " was deleted and created again", nil
		case err == nil:
			return l, "", nil
		case !kerr.IsRetriable(err):
			return nil, "", a.c.s.at(diag.New(diag.External, diag.Pos{}, "kafka: markers in topic %s cannot be read", ref.markers).Wrap(err).
				WithHint("grant READ and DESCRIBE on the topic"))
		}
		if err := sleep(ctx, wait); err != nil {
			return nil, "", err
		}
	}
}

// outcome is what the markers say of an item.
func (a *aheadCommitter) outcome(ctx context.Context, it *aheadItem) (checkpoint.Outcome, string, error) {
	l, why, err := a.log(ctx, &it.ref)
	if err != nil || why != "" {
		return checkpoint.OutcomeUnknown, why, err
	}
	committed, known := l.has(it.mark)
	switch {
	case committed:
		return checkpoint.OutcomeCommitted, "", nil
	case !known:
		return checkpoint.OutcomeUnknown, "markers as old as its own have been removed from topic " + it.ref.markers, nil
	}
	return checkpoint.OutcomeOpen, "", nil
}

// take makes this process the only one that can commit on the items' ids, and returns their producers by id.
func (a *aheadCommitter) take(ctx context.Context, list []aheadItem) (slots map[string]*slot, err error) {
	s := a.c.s
	k, err := s.configure(ctx)
	if err != nil {
		return nil, err
	}
	if s.owner != nil {
		if err := s.owner.acquireLease(ctx, s.log); err != nil {
			return nil, err
		}
	}
	ids := map[string]bool{}
	for i := range list {
		ids[list[i].ref.id] = true
	}
	slots = map[string]*slot{}
	var mu sync.Mutex
	err = inParallel(ctx, slices.Sorted(maps.Keys(ids)), func(ctx context.Context, id string) error {
		sl, err := openSlot(ctx, s.c, id, s.aheadTimeout(k))
		if err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		slots[id] = sl
		return nil
	})
	if err == nil && s.spec.Job.Owned != nil {
		err = s.spec.Job.Owned()
	}
	if err != nil {
		closeAll(slots)
		return nil, s.at(err)
	}
	return slots, nil
}

func closeAll(slots map[string]*slot) {
	for _, sl := range slots {
		sl.close()
	}
}

// classify tells the outcomes. It takes the ids first: an answer read before that could still change.
func (a *aheadCommitter) classify(ctx context.Context, cs []checkpoint.Committable) ([]checkpoint.Outcome, []string, error) {
	list, err := a.items(ctx, cs)
	if err != nil {
		return nil, nil, err
	}
	slots, err := a.take(ctx, list)
	if err != nil {
		return nil, nil, err
	}
	closeAll(slots)
	out, why := make([]checkpoint.Outcome, len(list)), make([]string, len(list))
	for i := range list {
		if out[i], why[i], err = a.outcome(ctx, &list[i]); err != nil {
			return nil, nil, err
		}
		if out[i] == checkpoint.OutcomeOpen && a.swept && !a.kept[list[i].mark] {
			out[i] = checkpoint.OutcomeAborted
		}
	}
	return out, why, nil
}

// commit writes what has no marker yet, in order per id.
func (a *aheadCommitter) commit(ctx context.Context, cs []checkpoint.Committable) error {
	list, err := a.items(ctx, cs)
	if err != nil {
		return err
	}
	for wait := 10 * time.Millisecond; ; wait = min(2*wait, time.Second) {
		again, err := a.round(ctx, list)
		if err == nil || again == nil {
			return err
		}
		a.c.s.log.Warn("kafka: commit is not confirmed, it starts over", "table", a.c.s.spec.Table.Name, "error", again)
		if err := sleep(ctx, wait); err != nil {
			return err
		}
	}
}

// round is one try. again is the reason to start over.
func (a *aheadCommitter) round(ctx context.Context, list []aheadItem) (again, err error) {
	slots, err := a.take(ctx, list)
	if err != nil {
		return nil, err
	}
	defer closeAll(slots)
	todo := map[string][]aheadItem{}
	oldest := maxID
	for i := range list {
		it := &list[i]
		oldest = min(oldest, it.mark.ckpt)
		o, why, err := a.outcome(ctx, it)
		if err != nil {
			return nil, err
		}
		switch o {
		case checkpoint.OutcomeCommitted:
		case checkpoint.OutcomeOpen:
			todo[it.ref.id] = append(todo[it.ref.id], *it)
		default:
			return nil, diag.New(diag.Lost, a.c.s.spec.Table.Options.Pos("connector"), "table %s: %s of checkpoint %d cannot be committed", a.c.s.spec.Table.Name, it.ref.String(), it.mark.ckpt).
				WithDetail("whether they are in the topic already is %s: %s", o, why).
				WithHint("restart the job: it rewinds to the checkpoint before when that is provably exact; else start from a newer savepoint, or without one")
		}
	}
	ids := slices.Sorted(maps.Keys(todo))
	if len(ids) == 0 {
		return nil, nil
	}
	k, err := a.c.s.configure(ctx)
	if err != nil {
		return nil, err
	}
	adm, err := a.c.adm.get(k.tv)
	if err != nil {
		return nil, err
	}
	gone := a.expired(todo[ids[0]][0], oldest)
	err = inParallel(ctx, ids, func(ctx context.Context, id string) error {
		var tombs []*kgo.Record
		if id == ids[0] {
			tombs = gone
		}
		sl := slots[id]
		if err := a.write(ctx, sl, todo[id], tombs); err != nil {
			return err
		}
		ref := txnRef{id: id, pid: sl.pid, epoch: sl.epoch, tv: k.tv}
		if err := endTxn(ctx, adm, &ref, true); err != nil {
			return errors.Join(errUnanswered, err)
		}
		return nil
	})
	if err != nil && ctx.Err() == nil && startsOver(err) {
		return err, err
	}
	return nil, a.c.s.at(err)
}

// errUnanswered says that it is not known whether a transaction was committed.
var errUnanswered = errors.New("the coordinator did not say that the transaction is committed")

func startsOver(err error) bool { return errors.Is(err, errUnanswered) || undecided(err) }

// write produces the items of one id in one transaction, which is then ready to be committed.
func (a *aheadCommitter) write(ctx context.Context, sl *slot, items []aheadItem, more []*kgo.Record) error {
	pid, epoch := sl.pid, sl.epoch
	if err := sl.begin(ctx); err != nil {
		return err
	}
	if sl.pid != pid || sl.epoch != epoch {
		return errUnanswered // the id was initialised again since the markers were read
	}
	for i := range items {
		recs, err := items[i].ref.records()
		if err != nil {
			return err
		}
		for _, r := range recs {
			sl.cl.Produce(ctx, r, sl.delivered)
		}
		m, err := a.marker(&items[i])
		if err != nil {
			return err
		}
		sl.cl.Produce(ctx, m, sl.delivered)
	}
	for _, r := range more {
		sl.cl.Produce(ctx, r, sl.delivered)
	}
	if err := sl.flush(ctx); err != nil {
		return err
	}
	if err := checkpoint.Failpoint("kafka.ahead.flushed"); err != nil {
		return err
	}
	sl.state = slotPrepared // from here on closing must not abort it
	return nil
}

func (a *aheadCommitter) marker(it *aheadItem) (*kgo.Record, error) {
	v, err := json.Marshal(markerValue{Job: a.c.s.spec.Job.Name, Table: a.c.s.spec.Table.Name, Rows: it.ref.rows})
	if err != nil {
		return nil, err
	}
	return &kgo.Record{Topic: it.ref.markers, Partition: 0, Key: []byte(it.mark.key()), Value: v, Timestamp: time.Now()}, nil
}

// expired are the records that remove markers nobody can ask for any more: the floor and tombstones.
func (a *aheadCommitter) expired(it aheadItem, oldest checkpoint.ID) []*kgo.Record {
	m := it.mark
	m.ckpt = oldest
	old, floor := a.logs[it.ref.markers].expired(m, a.keep)
	if len(old) == 0 {
		return nil
	}
	v, _ := json.Marshal(floorValue{floor}) // a number
	out := []*kgo.Record{{Topic: it.ref.markers, Partition: 0, Key: []byte(m.floorKey()), Value: v, Timestamp: time.Now()}}
	for _, o := range old {
		out = append(out, &kgo.Record{Topic: it.ref.markers, Partition: 0, Key: []byte(o.key()), Timestamp: time.Now()})
	}
	return out
}

func (a *aheadCommitter) close() {
	if a.cl != nil {
		a.cl.Close()
		a.cl = nil
	}
	a.logs = map[string]*markerLog{}
}
