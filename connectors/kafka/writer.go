package kafka

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/connectors/format"
	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/diag"
	"github.com/streamsql/streamsql/sql/types"
)

// writer turns a subtask's rows into records and produces them: into the transaction of the current epoch, or plainly.
type writer struct {
	s       *sink
	subtask int
	log     *slog.Logger
	value   format.Encoder
	key     format.Encoder
	fixed   bool
	buffer  *upsertBuffer // nil unless 'sink.buffer-flush' is on
	noKinds batch.Batch

	group  *txnGroup // exactly-once
	member member
	cur    *slot // the transaction of the epoch after member.after, nil before its first row

	ahead *aheadWriter // write-ahead

	plain *slot // at-least-once and none: a producer without transactions
}

func (w *writer) init() (err error) {
	x := w.s.x
	w.value, w.key, err = x.encoders(w.s.layout, w.s.spec.Session)
	w.fixed = !x.upsert && x.v.String("sink.partitioner") == "fixed"
	if x.upsert && x.v.Int("sink.buffer-flush.max-rows") > 0 {
		w.buffer = &upsertBuffer{maxRows: int(x.v.Int("sink.buffer-flush.max-rows")), interval: x.v.Duration("sink.buffer-flush.interval"),
			rows: map[string]bufferedRow{}}
	}
	return err
}

// Write implements connectors.Writer.
func (w *writer) Write(ctx context.Context, b *batch.Batch) error {
	n := b.Len()
	if n == 0 {
		return nil
	}
	sl := w.s.slabs.get(n)
	if err := w.encode(b, sl); err != nil {
		return err
	}
	if w.buffer != nil {
		return w.bufferRows(ctx, b, sl)
	}
	return w.produce(ctx, sl)
}

// encode fills the slab's records.
func (w *writer) encode(b *batch.Batch, sl *slab) error {
	upsert := w.s.x.upsert
	plain := b
	if b.Kinds != nil {
		plain = withoutKinds(b, &w.noKinds)
	}
	vb := b
	if upsert {
		vb = plain
	}
	if err := w.value.Encode(vb, &sl.values); err != nil {
		return w.rowError(err)
	}
	if w.key != nil {
		if err := w.key.Encode(plain, &sl.key); err != nil {
			return w.rowError(err)
		}
	}
	if sl.values.Len() != len(sl.recs) || w.key != nil && sl.key.Len() != len(sl.recs) {
		return diag.New(diag.Internal, diag.Pos{}, "table %s: the format wrote %d values and %d keys for %d rows", w.s.x.t.Name, sl.values.Len(), sl.key.Len(), len(sl.recs))
	}
	l, single := w.s.layout, w.s.x.single()
	for i := range sl.recs {
		r := &sl.recs[i]
		*r = kgo.Record{Topic: single, Value: sl.values.At(i), Partition: anyPartition}
		if w.key != nil {
			r.Key = sl.key.At(i)
		}
		if w.fixed {
			r.Partition = int32(w.subtask)
		}
		row := b.Row(i)
		if upsert && b.Kind(row).IsRetract() {
			r.Value = nil
		}
		if l.timestamp >= 0 || l.topic >= 0 || l.headers >= 0 || l.headerList >= 0 {
			if err := w.metadata(r, b, row); err != nil {
				return err
			}
		}
	}
	return nil
}

func (w *writer) rowError(err error) error {
	return diag.New(diag.Data, diag.Pos{}, "table %s: a row cannot be written as %s", w.s.x.t.Name, w.s.x.fm.Value.Name).Wrap(err)
}

// metadata fills in what writable metadata columns say. NULL means the default.
func (w *writer) metadata(r *kgo.Record, b *batch.Batch, row int) error {
	l := w.s.layout
	if l.timestamp >= 0 && !b.Cols[l.timestamp].IsNull(row) {
		v := b.Cols[l.timestamp]
		if !v.Type.IsTimestamp() || v.Type.Phys() != types.PhysI64 {
			return diag.New(diag.Internal, diag.Pos{}, "table %s: a record's timestamp cannot be a %s", w.s.x.t.Name, v.Type)
		}
		r.Timestamp = time.UnixMicro(v.I64[v.Idx(row)])
	}
	if l.topic >= 0 {
		v := b.Cols[l.topic]
		if v.IsNull(row) {
			return w.topicError("NULL")
		}
		r.Topic = v.Str[v.Idx(row)]
		if !w.s.allows(r.Topic) {
			return w.topicError("'" + r.Topic + "'")
		}
	}
	if l.headers >= 0 && !b.Cols[l.headers].IsNull(row) {
		list := b.Cols[l.headers].Datum(row).List
		for i := 0; i+1 < len(list); i += 2 {
			r.Headers = appendHeader(r.Headers, list[i], list[i+1])
		}
	}
	if l.headerList >= 0 && !b.Cols[l.headerList].IsNull(row) {
		for _, h := range b.Cols[l.headerList].Datum(row).List {
			if !h.IsNull && len(h.List) == 2 {
				r.Headers = appendHeader(r.Headers, h.List[0], h.List[1])
			}
		}
	}
	return nil
}

// appendHeader drops headers without a key, as Flink does. A NULL value stays NULL.
func appendHeader(hs []kgo.RecordHeader, key, value types.Datum) []kgo.RecordHeader {
	if key.IsNull {
		return hs
	}
	h := kgo.RecordHeader{Key: key.Str}
	if !value.IsNull {
		h.Value = append([]byte{}, value.Str...)
	}
	return append(hs, h)
}

func (w *writer) topicError(what string) error {
	e := diag.New(diag.Data, diag.Pos{}, "table %s: a row has topic %s, which the table does not allow", w.s.x.t.Name, what)
	if w.s.x.pattern != nil {
		return e.WithDetail("'topic-pattern' is '%s'", w.s.x.v.String("topic-pattern"))
	}
	return e.WithDetail("'topic' allows %v", w.s.x.topics)
}

// allows reports whether rows may name topic.
func (s *sink) allows(topic string) bool {
	if s.x.pattern != nil {
		return s.x.pattern.MatchString(topic)
	}
	for _, t := range s.x.topics {
		if t == topic {
			return true
		}
	}
	return false
}

// produce hands the slab's records to the producer.
func (w *writer) produce(ctx context.Context, sl *slab) error {
	if w.ahead != nil {
		return w.keep(sl)
	}
	target, err := w.target(ctx)
	if err != nil {
		return err
	}
	if err := target.failure(); err != nil && !w.lossy() {
		return err
	}
	sl.slot = target
	sl.left.Store(int64(len(sl.recs)))
	if w.s.maxBytes > 0 {
		target.bytes.Add(sl.bytes())
	}
	now := time.Now() // the client would ask the clock for each record
	for i := range sl.recs {
		if sl.recs[i].Timestamp.IsZero() {
			sl.recs[i].Timestamp = now
		}
		target.cl.Produce(ctx, &sl.recs[i], sl.promise)
	}
	return nil
}

// lossy is 'sink.delivery-guarantee' = 'none': errors are logged.
func (w *writer) lossy() bool { return w.s.x.guarantee() == "none" }

func (w *writer) target(ctx context.Context) (*slot, error) {
	if w.plain != nil {
		return w.plain, nil
	}
	if w.cur == nil {
		s, err := w.group.acquire(ctx, &w.member)
		if err != nil {
			return nil, w.s.at(err)
		}
		w.cur = s
	}
	if w.s.maxBytes > 0 && w.cur.bytes.Load() >= w.s.maxBytes {
		if err := w.split(ctx); err != nil {
			return nil, w.s.at(err)
		}
	}
	return w.cur, nil
}

// PreCommit implements connectors.Writer.
func (w *writer) PreCommit(ctx context.Context, id checkpoint.ID) ([]checkpoint.Committable, error) {
	if err := checkpoint.Failpoint("kafka.precommit.before"); err != nil {
		return nil, err
	}
	if w.buffer != nil {
		if err := w.flushBuffer(ctx); err != nil {
			return nil, err
		}
	}
	if w.plain != nil {
		return nil, w.flushPlain(ctx)
	}
	if w.ahead != nil {
		return w.preCommitAhead(id)
	}
	if w.cur != nil {
		// Rows behind the barrier go through another producer, and must not overtake these: of a key the last record counts.
		if err := w.cur.cl.Flush(ctx); err != nil {
			return nil, w.s.at(fmt.Errorf("kafka sink: flushing transaction %s: %w", w.cur.id, err))
		}
		w.cur = nil
	}
	refs, err := w.group.preCommit(ctx, &w.member, id)
	if err != nil {
		return nil, w.s.at(err)
	}
	out := make([]checkpoint.Committable, 0, len(refs))
	for i := range refs {
		out = append(out, checkpoint.Committable{Sink: w.s.spec.ID, Checkpoint: id, Subtask: w.subtask,
			Lineage: w.s.spec.Job.Lineage, Payload: refs[i].encode(), CreatedAt: time.UnixMilli(refs[i].startMs)})
	}
	return out, checkpoint.Failpoint("kafka.precommit.after")
}

func (w *writer) flushPlain(ctx context.Context) error {
	if err := w.plain.cl.Flush(ctx); err != nil {
		return fmt.Errorf("table %s: flushing to kafka: %w", w.s.x.t.Name, err)
	}
	err := w.plain.failure()
	if err != nil && w.lossy() {
		w.log.Error("kafka: rows were lost", "table", w.s.x.t.Name, "error", err)
		w.plain.failed.Store(nil)
		return nil
	}
	return w.s.at(err)
}

// Committed implements connectors.Writer.
func (w *writer) Committed(ctx context.Context, id checkpoint.ID) error {
	if w.group == nil {
		return nil
	}
	return w.group.committed(ctx, id)
}

// Close implements connectors.Writer.
func (w *writer) Close() error {
	if w.group != nil {
		w.group.leave(&w.member)
	}
	if w.plain != nil {
		w.plain.cl.Close()
		w.plain = nil
	}
	return nil
}
