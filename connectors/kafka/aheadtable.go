package kafka

import (
	"fmt"
	"slices"
	"time"

	"github.com/streamsql/streamsql/connectors"
)

// ahead reports whether the table is written by the write-ahead protocol.
func (x *table) ahead() bool {
	return x.guarantee() == "exactly-once" && x.v.Enum(commitProtocolOption) == writeAhead
}

// slots is how many transactional ids a subtask uses in turn.
func (x *table) slots() int {
	if x.ahead() {
		return 1 // a transaction is over when its commit returns
	}
	return int(x.v.Int("sink.transactional-id-slots"))
}

// checkAhead refuses options of one protocol that are given with the other, where they would do nothing.
func (x *table) checkAhead() error {
	useless := func(why, hint string, keys ...string) error {
		for _, k := range keys {
			if x.v.Has(k) {
				return x.fail(k, "option '%s' has no effect %s", k, why).WithHint("%s", hint)
			}
		}
		return nil
	}
	if x.v.Enum(commitProtocolOption) != writeAhead {
		return useless("without '"+commitProtocolOption+"' = '"+writeAhead+"'", "remove it, or set '"+commitProtocolOption+"' = '"+writeAhead+"'",
			maxBytesOption, markerTopicOption)
	}
	if x.guarantee() != "exactly-once" {
		return useless("with 'sink.delivery-guarantee' = '"+x.guarantee()+"'", "remove one of the two options", commitProtocolOption)
	}
	if err := useless("with '"+commitProtocolOption+"' = '"+writeAhead+"'",
		"remove it: every subtask has one transactional id, used only while it commits, and what the checkpoint keeps cannot time out",
		"sink.transaction-scope", slotsOption, splitOption, "sink.recovery.on-lost-transaction"); err != nil {
		return err
	}
	if n := x.v.Memory(maxBytesOption); n <= 0 {
		return x.fail(maxBytesOption, "option '%s' must be more than 0", maxBytesOption)
	}
	m := x.v.String(markerTopicOption)
	if len(m) > 249 || !topicName.MatchString(m) {
		return x.fail(markerTopicOption, "'%s' cannot be a topic name", m).WithDetail("a name has up to 249 letters, digits, '.', '_' and '-'")
	}
	if slices.Contains(x.topics, m) {
		return x.fail(markerTopicOption, "topic '%s' cannot hold the rows and their markers", m).WithHint("give '%s' a topic of its own", markerTopicOption)
	}
	return nil
}

// aheadCommitment is what EXPLAIN GUARANTEES says of the write-ahead protocol.
func (x *table) aheadCommitment() connectors.Commitment {
	return connectors.Commitment{
		Held: "in the checkpoint itself; no transaction is open; they are written in one Kafka transaction with a marker record after it is durable",
		ID:   "the records and the transactional id that writes them; their marker is known by lineage, checkpoint, subtask and sink",
		Known: fmt.Sprintf("the marker record in topic %s, which the transaction of the rows writes too; it is read after the transactional id was initialised, so that no earlier run can add it later",
			x.v.String(markerTopicOption)),
		Ends: "nothing: the rows stay in the checkpoint, however long the job is down",
	}
}

// aheadTimeoutMs bounds the one commit that a transaction lives for. One that is left by a crash holds back readers of its
// partitions until then, or until the job starts again.
const aheadTimeoutMs = int64(5 * time.Minute / time.Millisecond)

// aheadTimeout is the transaction timeout of a commit: the table's, else what a commit needs at most.
func (s *sink) aheadTimeout(k cluster) int64 {
	if s.c.txnTimeoutMs > 0 {
		return s.c.txnTimeoutMs
	}
	return min(s.timeout(k), aheadTimeoutMs)
}
