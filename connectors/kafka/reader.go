package kafka

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/connectors"
	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/diag"
)

// pollWait bounds how long Next waits for records.
const pollWait = 10 * time.Millisecond

// reader reads a subtask's partitions with one client. Partitions are assigned by hand; no group is joined.
type reader struct {
	s       *source
	cl      *kgo.Client
	splits  map[partition]*split
	open    int        // splits not done
	news    []*split   // positions to report before rows: starts that were resolved just now
	queue   []*fetched // polled and not yet decoded, in order
	rows    *rowReader
	pending error // of a poll that also brought records
}

// split is a partition being read.
type split struct {
	partition
	name  checkpoint.Split
	pos   position
	done  bool
	moved time.Time // when it last delivered records or was looked at
}

// fetched are records of one partition.
type fetched struct {
	split *split
	recs  []*kgo.Record
	end   int64 // end of what is visible, for the lag
}

func newReader(s *source) (*reader, error) {
	rows, err := newRowReader(s)
	if err != nil {
		return nil, err
	}
	cl, err := kgo.NewClient(s.c.opts(s.c.consumer, []kgo.Opt{kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{}), kgo.WithPools(&recordPool{})})...)
	if err != nil {
		return nil, diag.New(diag.Config, s.spec.Table.Options.Pos("connector"), "table %s: kafka consumer cannot be made", s.spec.Table.Name).Wrap(err)
	}
	return &reader{s: s, cl: cl, splits: map[partition]*split{}, rows: rows}, nil
}

// assign starts reading splits. Those without position start where the table says or, when they were discovered after
// the start, at their first record.
func (r *reader) assign(ctx context.Context, positions []checkpoint.Position, atStart bool) error {
	var fresh []partition
	at := map[partition]position{}
	topics, err := r.s.topics(ctx) // checks topic ids, and knows the ids of new partitions
	if err != nil {
		return err
	}
	for _, p := range positions {
		tp, err := parseSplit(p.Split)
		if err != nil {
			return err
		}
		if p.Next == nil {
			fresh = append(fresh, tp)
			continue
		}
		pos, err := decodePosition(p.Next)
		if err != nil {
			return err
		}
		d, ok := topics[tp.topic]
		if !ok {
			return explainTopic(kerr.UnknownTopicOrPartition, r.s.spec.Table, tp.topic)
		}
		if pos.topicID != [16]byte{} && [16]byte(d.ID) != [16]byte{} && pos.topicID != [16]byte(d.ID) {
			return r.s.recreated(tp.topic)
		}
		at[tp] = pos
	}
	if len(fresh) > 0 {
		resolved, err := r.s.resolve(ctx, fresh, atStart)
		if err != nil {
			return err
		}
		for tp, pos := range resolved {
			at[tp] = pos
		}
	}
	add := map[string]map[int32]kgo.Offset{}
	for tp, pos := range at {
		s := &split{partition: tp, name: tp.split(), pos: pos, moved: time.Now()}
		r.splits[tp] = s
		r.open++
		r.news = append(r.news, s)
		if pos.stop == noStop || pos.next < pos.stop {
			if add[tp.topic] == nil {
				add[tp.topic] = map[int32]kgo.Offset{}
			}
			add[tp.topic][tp.num] = kgo.NewOffset().At(pos.next).WithEpoch(pos.epoch)
		}
	}
	if len(add) > 0 {
		r.cl.AddConsumePartitions(add)
	}
	return nil
}

// Positions implements connectors.Positioner.
func (r *reader) Positions() []checkpoint.Position {
	var out []checkpoint.Position
	for _, s := range r.splits {
		out = append(out, checkpoint.Position{Split: s.name, Next: s.pos.encode()})
	}
	return out
}

// Add implements connectors.Reader. A split that comes later is read from its first record.
func (r *reader) Add(ctx context.Context, p checkpoint.Position) error {
	return r.assign(ctx, []checkpoint.Position{p}, false)
}

// Next implements connectors.Reader.
func (r *reader) Next(ctx context.Context, out *batch.Builder) (connectors.Progress, error) {
	if len(r.news) > 0 {
		s := r.news[0]
		r.news = r.news[1:]
		r.finish(s)
		return connectors.Progress{Split: s.name, Position: s.pos.encode(), Done: s.done, Lag: -1}, nil
	}
	if len(r.queue) == 0 {
		if r.open == 0 && r.s.bound.mode != "unbounded" {
			return connectors.Progress{}, io.EOF
		}
		if err := r.poll(ctx); err != nil {
			return connectors.Progress{}, err
		}
		if len(r.queue) == 0 {
			return connectors.Progress{}, r.skipTails(ctx)
		}
	}
	f := r.queue[0]
	n := min(len(f.recs), max(1, batch.Size-out.Len()))
	if most := r.s.c.maxPoll; most > 0 {
		n = min(n, most)
	}
	p, err := r.take(ctx, f, n, out)
	if err != nil {
		return p, err
	}
	for _, rec := range f.recs[:n] {
		rec.Recycle()
	}
	if f.recs = f.recs[n:]; len(f.recs) == 0 || f.split.done {
		r.queue = r.queue[1:]
	}
	return p, nil
}

// take decodes the first n records of f.
func (r *reader) take(ctx context.Context, f *fetched, n int, out *batch.Builder) (connectors.Progress, error) {
	s, recs := f.split, f.recs[:n]
	if s.done {
		return connectors.Progress{}, nil // polled before the end was reached
	}
	if s.pos.stop != noStop {
		for i, rec := range recs {
			if rec.Offset >= s.pos.stop {
				recs = recs[:i]
				s.pos.next = s.pos.stop
				break
			}
		}
	}
	st, err := r.rows.read(ctx, s, recs, out)
	if err != nil {
		return connectors.Progress{}, err
	}
	if len(recs) > 0 {
		last := recs[len(recs)-1]
		s.pos.next = max(s.pos.next, last.Offset+1)
		s.pos.epoch = last.LeaderEpoch
	}
	r.finish(s)
	return connectors.Progress{Split: s.name, Position: s.pos.encode(), Done: s.done, Records: st.records, Bytes: st.bytes,
		Lag: max(0, f.end-s.pos.next), Skipped: st.bad}, nil
}

// finish ends a split that reached its stop offset. Control records count: a log can end with a marker.
func (r *reader) finish(s *split) {
	if s.done || s.pos.stop == noStop || s.pos.next < s.pos.stop {
		return
	}
	s.done = true
	r.open--
	r.cl.RemoveConsumePartitions(map[string][]int32{s.topic: {s.num}})
}

// poll waits a moment for records and queues them by partition.
func (r *reader) poll(ctx context.Context) error {
	if r.pending != nil {
		return r.pending
	}
	if err := checkpoint.Failpoint("kafka.poll"); err != nil {
		return err
	}
	pctx, cancel := context.WithTimeout(ctx, pollWait)
	defer cancel()
	fs := r.cl.PollFetches(pctx)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	for _, f := range fs {
		for i := range f.Topics {
			t := &f.Topics[i]
			for j := range t.Partitions {
				p := &t.Partitions[j]
				s := r.splits[partition{t.Topic, p.Partition}]
				if s == nil {
					if p.Err != nil && !errors.Is(p.Err, context.DeadlineExceeded) && !errors.Is(p.Err, context.Canceled) {
						r.fail(r.s.external(p.Err, "reading from kafka failed"))
					}
					continue
				}
				if p.Err != nil && !s.done {
					r.fail(r.fetchError(ctx, s, p))
				}
				if len(p.Records) > 0 && !s.done {
					end := p.HighWatermark
					if r.s.c.isolation == kgo.ReadCommitted() && p.LastStableOffset >= 0 {
						end = p.LastStableOffset
					}
					s.moved = time.Now()
					r.queue = append(r.queue, &fetched{split: s, recs: p.Records, end: end})
				}
			}
		}
	}
	if len(r.queue) == 0 {
		return r.pending
	}
	return nil
}

// fail keeps the first error until the records polled with it are delivered.
func (r *reader) fail(err error) {
	if r.pending == nil {
		r.pending = err
	}
}

// fetchError explains a partition's error, or moves the partition when 'scan.on-out-of-range' allows it.
func (r *reader) fetchError(ctx context.Context, s *split, p *kgo.FetchPartition) error {
	var loss *kgo.ErrDataLoss
	lost := errors.As(p.Err, &loss)
	if lost || errors.Is(p.Err, kerr.OffsetOutOfRange) || errors.Is(p.Err, kerr.FencedLeaderEpoch) {
		return r.outOfRange(ctx, s, p, loss)
	}
	switch {
	case errors.Is(p.Err, kerr.UnknownTopicID), errors.Is(p.Err, kerr.InconsistentTopicID):
		return r.s.recreated(s.topic)
	case errors.Is(p.Err, kerr.UnknownTopicOrPartition), errors.Is(p.Err, kerr.TopicAuthorizationFailed):
		return explainTopic(p.Err, r.s.spec.Table, s.topic)
	}
	return r.s.external(p.Err, "reading %s at offset %d failed", s.partition, s.pos.next)
}

func (r *reader) outOfRange(ctx context.Context, s *split, p *kgo.FetchPartition, loss *kgo.ErrDataLoss) error {
	o, err := r.s.newOffsets(ctx, []partition{s.partition})
	if err != nil {
		return err
	}
	begin, err := o.begin(s.partition)
	if err != nil {
		return err
	}
	end, err := o.end(s.partition)
	if err != nil {
		return err
	}
	var what string
	switch {
	case loss != nil:
		what = fmt.Sprintf("the log was cut to offset %d by a leader election that lost records", loss.ResetTo)
	case s.pos.next < begin:
		what = fmt.Sprintf("%d records, offsets %d to %d, were deleted before they were read", begin-s.pos.next, s.pos.next, begin-1)
	default:
		what = fmt.Sprintf("offset %d is behind the end of the log, %d: records that were read are gone", s.pos.next, end)
	}
	to := begin
	switch r.s.x.v.Enum("scan.on-out-of-range") {
	case "fail":
		return diag.New(diag.External, r.s.spec.Table.Options.Pos("topic"), "table %s: %s: the position to read on, offset %d, does not exist", r.s.spec.Table.Name, s.partition, s.pos.next).
			WithDetail("%s; the log holds offsets %d to %d", what, begin, end-1).
			WithHint("raise the topic's retention; to go on with a gap, set 'scan.on-out-of-range' = 'earliest' or 'latest'")
	case "latest":
		to = end
	}
	r.s.log.Warn("kafka: going on behind a gap ('scan.on-out-of-range')", "table", r.s.spec.Table.Name, "topic", s.topic, "partition", s.num,
		"from", s.pos.next, "to", to, "reason", what)
	r.cl.RemoveConsumePartitions(map[string][]int32{s.topic: {s.num}})
	r.cl.AddConsumePartitions(map[string]map[int32]kgo.Offset{s.topic: {s.num: kgo.NewOffset().At(to)}})
	s.pos.next, s.pos.epoch = to, -1
	r.news = append(r.news, s)
	return nil
}

// Close implements connectors.Reader.
func (r *reader) Close() error {
	r.cl.Close()
	return r.rows.close()
}
