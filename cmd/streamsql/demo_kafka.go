package main

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// observer is the demo's own client: it loads the input and looks at topics as any consumer would, apart from the engine.
type observer struct {
	addr string
	cl   *kgo.Client
	adm  *kadm.Client
}

func newObserver(addr string) (*observer, error) {
	cl, err := kgo.NewClient(kgo.SeedBrokers(addr), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerLinger(0))
	if err != nil {
		return nil, err
	}
	return &observer{addr: addr, cl: cl, adm: kadm.NewClient(cl)}, nil
}

func (o *observer) close() { o.cl.Close() }

func (o *observer) create(ctx context.Context, partitions int32, topics ...string) error {
	rs, err := o.adm.CreateTopics(ctx, partitions, 1, nil, topics...)
	if err != nil {
		return err
	}
	return rs.Error()
}

// load produces a record and counts it when the broker has it.
func (o *observer) load(ctx context.Context, topic string, partition int32, value []byte, loaded *atomic.Int64) {
	o.cl.Produce(ctx, &kgo.Record{Topic: topic, Partition: partition, Value: value}, func(_ *kgo.Record, err error) {
		if err == nil {
			loaded.Add(1)
		}
	})
}

// open is the number of records of a topic that a read_committed consumer may not see yet: those at or after the first
// open transaction.
func (o *observer) open(ctx context.Context, topic string) (int64, error) {
	ends, err := o.adm.ListEndOffsets(ctx, topic)
	if err != nil {
		return 0, err
	}
	stable, err := o.adm.ListCommittedOffsets(ctx, topic)
	if err != nil {
		return 0, err
	}
	var n int64
	ends.Each(func(e kadm.ListedOffset) {
		if s, ok := stable.Lookup(topic, e.Partition); ok {
			n += e.Offset - s.Offset
		}
	})
	return n, nil
}

// end is the sum of a topic's end offsets.
func (o *observer) end(ctx context.Context, topic string) (n int64, err error) {
	ends, err := o.adm.ListEndOffsets(ctx, topic)
	if err != nil {
		return 0, err
	}
	ends.Each(func(e kadm.ListedOffset) { n += e.Offset })
	return n, ends.Error()
}

// read returns the values of a topic, from its beginning to its present end, that a consumer with the isolation level
// sees. It is an ordinary consumer without a group.
func (o *observer) read(ctx context.Context, topic string, level kgo.IsolationLevel) ([][]byte, error) {
	ends, err := o.adm.ListCommittedOffsets(ctx, topic)
	if err == nil {
		err = ends.Error()
	}
	if err != nil {
		return nil, err
	}
	left := map[int32]int64{} // partition → offset to reach
	ends.Each(func(e kadm.ListedOffset) {
		if e.Offset > 0 {
			left[e.Partition] = e.Offset
		}
	})
	// Control records are kept only to see that the end was reached; they carry no value of the topic.
	cl, err := kgo.NewClient(kgo.SeedBrokers(o.addr), kgo.ConsumeTopics(topic), kgo.FetchIsolationLevel(level), kgo.KeepControlRecords())
	if err != nil {
		return nil, err
	}
	defer cl.Close()
	var out [][]byte
	for len(left) > 0 {
		fs := cl.PollFetches(ctx)
		if err := fs.Err(); err != nil {
			return nil, fmt.Errorf("read topic %s: %w", topic, err)
		}
		fs.EachRecord(func(r *kgo.Record) {
			if !r.Attrs.IsControl() {
				out = append(out, r.Value)
			}
			if end, ok := left[r.Partition]; ok && r.Offset+1 >= end {
				delete(left, r.Partition)
			}
		})
	}
	return out, nil
}
