package kafka

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kbin"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// tailPatience is how long a bounded partition may deliver nothing before its rest is looked at.
const tailPatience = 300 * time.Millisecond

// skipTails ends bounded partitions whose rest holds nothing visible: aborted records whose marker lies behind the
// stop offset, or offsets emptied by compaction. The client delivers nothing for those, so no position would ever
// reach the stop.
func (r *reader) skipTails(ctx context.Context) error {
	if r.s.bound.mode == "unbounded" {
		return nil
	}
	now := time.Now()
	for _, s := range r.splits {
		if s.done || s.pos.stop == noStop || now.Sub(s.moved) < tailPatience {
			continue
		}
		s.moved = now
		empty, err := r.invisible(ctx, s)
		if err != nil {
			// The client meets the same trouble and reports what lasts.
			r.s.log.Debug("kafka: the end of a bounded partition cannot be looked at", "partition", s.partition.String(), "error", err)
			continue
		}
		if empty {
			s.pos.next = s.pos.stop
			r.news = append(r.news, s)
		}
	}
	return ctx.Err()
}

// invisible reports whether no record in [next, stop) is visible to a reader of committed records.
func (r *reader) invisible(ctx context.Context, s *split) (bool, error) {
	topics, err := r.s.topics(ctx)
	if err != nil {
		return false, err
	}
	td := topics[s.topic]
	leader := td.Partitions[s.num].Leader
	for off := s.pos.next; off < s.pos.stop; {
		req := kmsg.NewPtrFetchRequest()
		req.ReplicaID, req.MaxBytes, req.SessionEpoch = -1, 8<<20, -1
		if r.s.c.isolation == kgo.ReadCommitted() {
			req.IsolationLevel = 1
		}
		rt := kmsg.NewFetchRequestTopic()
		rt.Topic, rt.TopicID = s.topic, td.ID
		rp := kmsg.NewFetchRequestTopicPartition()
		rp.Partition, rp.FetchOffset, rp.PartitionMaxBytes, rp.CurrentLeaderEpoch = s.num, off, 8<<20, -1
		rt.Partitions = append(rt.Partitions, rp)
		req.Topics = append(req.Topics, rt)
		resp, err := req.RequestWith(ctx, r.cl.Broker(int(leader)))
		if err != nil {
			return false, err
		}
		if err := kerr.ErrorForCode(resp.ErrorCode); err != nil {
			return false, err
		}
		if len(resp.Topics) != 1 || len(resp.Topics[0].Partitions) != 1 {
			return false, nil
		}
		p := &resp.Topics[0].Partitions[0]
		if err := kerr.ErrorForCode(p.ErrorCode); err != nil {
			return false, err
		}
		next, visible := scanBatches(p, off, s.pos.stop)
		if visible || next == off {
			return false, nil
		}
		off = next
	}
	return true, nil
}

// scanBatches walks the batches of a fetched partition from offset off and returns the offset behind them. It stops
// at the first batch below stop that holds a record a reader would see.
func scanBatches(p *kmsg.FetchResponseTopicPartition, off, stop int64) (next int64, visible bool) {
	aborted := map[int64]bool{} // producers inside a transaction that was aborted
	pending := slices.Clone(p.AbortedTransactions)
	slices.SortFunc(pending, func(a, b kmsg.FetchResponseTopicPartitionAbortedTransaction) int {
		return cmp.Compare(a.FirstOffset, b.FirstOffset)
	})
	in := p.RecordBatches
	for next = off; len(in) > 17; {
		lead := kbin.Reader{Src: in}
		lead.Int64()
		size := int(lead.Int32()) + 12
		if size > len(in) || size < 61 {
			return next, false // cut off by the size limit of the fetch
		}
		var b kmsg.RecordBatch
		if in[16] != 2 || b.ReadFrom(in[:size]) != nil {
			return next, true // an old format: let the client decide
		}
		in = in[size:]
		last := b.FirstOffset + int64(b.LastOffsetDelta)
		if b.FirstOffset >= stop {
			return stop, false
		}
		for len(pending) > 0 && pending[0].FirstOffset <= last {
			aborted[pending[0].ProducerID] = true
			pending = pending[1:]
		}
		control, transactional := b.Attributes&0x20 != 0, b.Attributes&0x10 != 0
		if last >= off {
			if b.NumRecords > 0 && !control && !(transactional && aborted[b.ProducerID]) {
				return next, true
			}
			next = last + 1
		}
		if control {
			delete(aborted, b.ProducerID) // its marker: what follows is another transaction
		}
	}
	return next, false
}
