package kafka

import "github.com/twmb/franz-go/pkg/kgo"

// anyPartition marks a record whose partition is the partitioner's to choose.
const anyPartition = -1

// partitioner sends a record with Partition >= 0 to that partition modulo their number ('fixed': the subtask) and
// every other record where the Java client's default would: murmur2 of the key, sticky without a key. One producer can
// serve tables of both kinds.
type partitioner struct{}

// ForTopic implements kgo.Partitioner.
func (partitioner) ForTopic(topic string) kgo.TopicPartitioner {
	return &topicPartitioner{sticky: kgo.StickyKeyPartitioner(nil).ForTopic(topic)}
}

type topicPartitioner struct{ sticky kgo.TopicPartitioner }

// RequiresConsistency implements kgo.TopicPartitioner.
func (p *topicPartitioner) RequiresConsistency(r *kgo.Record) bool {
	return r.Partition >= 0 || p.sticky.RequiresConsistency(r)
}

// Partition implements kgo.TopicPartitioner.
func (p *topicPartitioner) Partition(r *kgo.Record, n int) int {
	if r.Partition >= 0 {
		return int(r.Partition) % n
	}
	return p.sticky.Partition(r, n)
}

// OnNewBatch implements kgo.TopicPartitionerOnNewBatch.
func (p *topicPartitioner) OnNewBatch() {
	if b, ok := p.sticky.(kgo.TopicPartitionerOnNewBatch); ok {
		b.OnNewBatch()
	}
}
