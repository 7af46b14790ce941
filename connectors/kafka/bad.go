package kafka

import (
	"context"
	"strconv"
	"sync/atomic"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/streamsql/streamsql/connectors/format"
	"github.com/streamsql/streamsql/sql/diag"
)

// badRecords is what a table does with records that cannot be decoded ('scan.on-error').
type badRecords struct {
	s       *source
	policy  string
	topic   string
	cl      *kgo.Client
	written int // since the last flush
	failed  atomic.Pointer[produceError]
	told    int64
}

func (b *badRecords) open(s *source) error {
	b.s, b.policy = s, s.x.v.Enum("scan.on-error")
	if b.policy != "dead-letter" {
		return nil
	}
	b.topic = s.x.v.String("scan.dead-letter.topic")
	cl, err := kgo.NewClient(s.c.opts(s.c.producer, []kgo.Opt{kgo.RequiredAcks(kgo.AllISRAcks())})...)
	if err != nil {
		return diag.New(diag.Config, s.spec.Table.Options.Pos("scan.dead-letter.topic"), "table %s: kafka producer cannot be made", s.spec.Table.Name).Wrap(err)
	}
	b.cl = cl
	return nil
}

// handle applies the policy to a record.
func (b *badRecords) handle(ctx context.Context, r *rowReader, s *split, rec *kgo.Record, part string, bad *format.BadRecord) error {
	switch b.policy {
	case "skip":
	case "dead-letter":
		b.deadLetter(ctx, s, rec, part, bad)
	default:
		e := r.at(s, rec, bad)
		if d, ok := e.(*diag.Error); ok {
			d.WithDetail("the %s of the record is not valid %s", part, b.formatOf(part))
			if bad.Column != "" {
				d.WithDetail("the %s of the record does not fit the table", part)
			}
			d.WithHint("fix the producer, or set 'scan.on-error' = 'skip', or 'dead-letter' with 'scan.dead-letter.topic'")
		}
		return e
	}
	b.told++
	if b.told&(b.told-1) == 0 { // 1, 2, 4, 8, ...: a flood of bad records is told in few lines
		b.s.log.Warn("kafka: record cannot be decoded", "table", b.s.spec.Table.Name, "topic", s.topic, "partition", s.num, "offset", rec.Offset,
			"part", part, "error", bad.Error(), "policy", b.policy, "total", b.told)
	}
	return nil
}

func (b *badRecords) formatOf(part string) string {
	if part == "key" {
		return b.s.x.fm.Key.Name
	}
	return b.s.x.fm.Value.Name
}

// deadLetter copies the record as it came and tells place and reason in headers.
func (b *badRecords) deadLetter(ctx context.Context, s *split, rec *kgo.Record, part string, bad *format.BadRecord) {
	h := func(k, v string) kgo.RecordHeader {
		return kgo.RecordHeader{Key: "streamsql." + k, Value: []byte(v)}
	}
	out := &kgo.Record{Topic: b.topic, Key: rec.Key, Value: rec.Value, Timestamp: rec.Timestamp, Partition: anyPartition}
	out.Headers = append(append(out.Headers, rec.Headers...), h("table", b.s.spec.Table.Name), h("topic", s.topic),
		h("partition", strconv.Itoa(int(s.num))), h("offset", strconv.FormatInt(rec.Offset, 10)), h("part", part),
		h("column", bad.Column), h("reason", bad.Error()))
	b.written++
	b.cl.Produce(ctx, out, func(rec *kgo.Record, err error) {
		if err != nil {
			b.failed.CompareAndSwap(nil, &produceError{err: err, topic: rec.Topic, partition: rec.Partition})
		}
	})
}

// flush waits until what was sent is acknowledged, before the position moves past it: a dead letter can be written
// twice after a crash and is never missing.
func (b *badRecords) flush(ctx context.Context) error {
	if b.written == 0 {
		return nil
	}
	if err := b.cl.Flush(ctx); err != nil {
		return err
	}
	b.written = 0
	if f := b.failed.Load(); f != nil {
		return explainProduce(f.err, f.topic, f.partition)
	}
	return nil
}

func (b *badRecords) close() error {
	if b.cl != nil {
		b.cl.Close()
	}
	return nil
}
