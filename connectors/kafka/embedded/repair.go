package embedded

import (
	"context"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// openTxn is a transaction that has records and no marker.
type openTxn struct {
	first int64 // offset of its first record
	epoch int16
}

// abortOpen ends the transactions that a killed process left open. kfake takes them for aborted when it reads its log
// again, but writes no marker. Without one a reader also leaves out the producer's next transaction, which is committed,
// and the start after the next kill takes the marker of that one for both: records that were given up, and written
// again since, become visible. Markers in the log are what a real broker writes, and what everybody reads.
func abortOpen(ctx context.Context, addr string) error {
	cl, err := kgo.NewClient(kgo.SeedBrokers(addr))
	if err != nil {
		return err
	}
	defer cl.Close()
	meta, err := kmsg.NewPtrMetadataRequest().RequestWith(ctx, cl)
	if err != nil {
		return err
	}
	req := kmsg.NewPtrWriteTxnMarkersRequest()
	for _, t := range meta.Topics {
		for _, p := range t.Partitions {
			open, err := openTxns(ctx, cl, t, p.Partition)
			if err != nil {
				return fmt.Errorf("topic %s, partition %d: %w", *t.Topic, p.Partition, err)
			}
			for _, pid := range slices.Sorted(maps.Keys(open)) {
				m := kmsg.NewWriteTxnMarkersRequestMarker()
				m.ProducerID, m.ProducerEpoch = pid, open[pid].epoch
				mt := kmsg.NewWriteTxnMarkersRequestMarkerTopic()
				mt.Topic, mt.Partitions = *t.Topic, []int32{p.Partition}
				m.Topics = append(m.Topics, mt)
				req.Markers = append(req.Markers, m)
			}
		}
	}
	if len(req.Markers) == 0 {
		return nil
	}
	resp, err := req.RequestWith(ctx, cl)
	if err != nil {
		return err
	}
	for _, m := range resp.Markers {
		for _, t := range m.Topics {
			for _, p := range t.Partitions {
				if err := kerr.ErrorForCode(p.ErrorCode); err != nil {
					return fmt.Errorf("topic %s, partition %d: %w", t.Topic, p.Partition, err)
				}
			}
		}
	}
	return nil
}

// openTxns reads a partition's log and returns, by producer id, the transactions without a marker that the broker does
// not know of: those below the last stable offset. One above it can still be ended by its producer.
func openTxns(ctx context.Context, cl *kgo.Client, t kmsg.MetadataResponseTopic, partition int32) (map[int64]openTxn, error) {
	open := map[int64]openTxn{}
	off := int64(-1)
	for {
		p, err := fetch(ctx, cl, t, partition, max(off, 0))
		if err != nil {
			return nil, err
		}
		if off < 0 && p.LogStartOffset > 0 { // retention took the beginning
			off = p.LogStartOffset
			continue
		}
		next, err := scanTxns(p.RecordBatches, open)
		if err != nil {
			return nil, err
		}
		if next <= off {
			maps.DeleteFunc(open, func(_ int64, tx openTxn) bool { return tx.first >= p.LastStableOffset })
			return open, nil
		}
		off = next
	}
}

func fetch(ctx context.Context, cl *kgo.Client, t kmsg.MetadataResponseTopic, partition int32, off int64) (*kmsg.FetchResponseTopicPartition, error) {
	req := kmsg.NewPtrFetchRequest()
	req.MaxBytes, req.MinBytes, req.MaxWaitMillis, req.SessionEpoch, req.IsolationLevel = 16<<20, 0, 0, -1, 0
	rt := kmsg.NewFetchRequestTopic()
	rt.Topic, rt.TopicID = *t.Topic, t.TopicID
	rp := kmsg.NewFetchRequestTopicPartition()
	rp.Partition, rp.FetchOffset, rp.PartitionMaxBytes, rp.CurrentLeaderEpoch = partition, off, 16<<20, -1
	rt.Partitions = append(rt.Partitions, rp)
	req.Topics = append(req.Topics, rt)
	resp, err := req.RequestWith(ctx, cl)
	if err != nil {
		return nil, err
	}
	if err := kerr.ErrorForCode(resp.ErrorCode); err != nil {
		return nil, err
	}
	if len(resp.Topics) != 1 || len(resp.Topics[0].Partitions) != 1 {
		return nil, fmt.Errorf("a fetch at offset %d was not answered", off)
	}
	p := &resp.Topics[0].Partitions[0]
	err = kerr.ErrorForCode(p.ErrorCode)
	if err == kerr.OffsetOutOfRange && p.LogStartOffset > off {
		err = nil
	}
	return p, err
}

// scanTxns follows the batches of a fetch: a record opens its producer's transaction, a marker ends it. It returns the
// offset behind them, -1 when there are none. The last batch may be cut off.
func scanTxns(in []byte, open map[int64]openTxn) (next int64, err error) {
	next = -1
	for len(in) > 12 {
		size := 12 + int(binary.BigEndian.Uint32(in[8:]))
		if size > len(in) {
			break
		}
		var b kmsg.RecordBatch
		if err := b.ReadFrom(in[:size]); err != nil {
			return next, err
		}
		in = in[size:]
		next = b.FirstOffset + int64(b.LastOffsetDelta) + 1
		switch tx, ok := open[b.ProducerID]; {
		case b.Attributes&0x20 != 0: // control
			delete(open, b.ProducerID)
		case b.Attributes&0x10 != 0: // transactional
			if !ok {
				tx.first = b.FirstOffset
			}
			tx.epoch = b.ProducerEpoch
			open[b.ProducerID] = tx
		}
	}
	return next, nil
}
