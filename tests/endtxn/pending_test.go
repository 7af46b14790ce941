package endtxn

// Goal: know the answers while the coordinator has decided a transaction and cannot tell the partition's leader. Method:
// three nodes, every partition on one; the transaction's partition and its coordinator on different nodes; the leader
// stopped (SIGSTOP) before EndTxn.

import (
	"fmt"
	"testing"

	"github.com/streamsql/streamsql/tests/harness"
)

func TestPendingMarkers(t *testing.T) {
	for _, c := range brokers {
		if c.version != harness.KafkaDefault && c.version != harness.KafkaTV1 || c.opts != nil {
			continue // the two protocols once each
		}
		t.Run(fmt.Sprintf("%s-tv%d", c.version, c.tv), func(t *testing.T) {
			t.Parallel()
			b := harness.Kafka(t, harness.KafkaVersion(c.version), harness.KafkaNodes(3),
				harness.KafkaConfig("default.replication.factor", "1"), harness.KafkaConfig("min.insync.replicas", "1"),
				harness.KafkaConfig("transaction.state.log.replication.factor", "1"), harness.KafkaConfig("transaction.state.log.min.isr", "1"),
				// The stopped leader stays the leader for this long, more than the requests to the coordinator take.
				harness.KafkaConfig("broker.session.timeout.ms", "9000"))
			play(t, b, c.tv, fmt.Sprintf("testdata/%s-tv%d-pending.txt", c.version, c.tv), pending)
		})
	}
}

var pending = map[string]func(s *script){
	"commit-pending": func(s *script) {
		x, leader, _ := s.apart()
		s.check(s.b.PauseNode(leader))
		s.say("commit: %s", s.commit(x))
		s.say("state: %s", s.state(x))
		s.say("commit again: %s", s.commit(x))
		s.say("abort: %s", s.end(x, false))
		answer, _ := s.initOnce(x)
		s.say("init: %s", answer)
		s.check(s.b.ResumeNode(leader))
		s.say("later: %s", s.until(x, "Complete"))
		s.say("commit again: %s", s.commit(x))
		s.say("marker: %s; visible: %d", s.decided(x), s.visible())
	},
	"abort-pending": func(s *script) {
		x, leader, _ := s.apart()
		s.check(s.b.PauseNode(leader))
		s.say("abort: %s", s.end(x, false))
		s.say("state: %s", s.state(x))
		s.say("commit: %s", s.commit(x))
		s.check(s.b.ResumeNode(leader))
		s.say("later: %s", s.until(x, "Complete"))
		s.say("commit: %s", s.commit(x))
		s.say("marker: %s; visible: %d", s.decided(x), s.visible())
	},
	"coordinator-crash-while-pending": func(s *script) {
		x, leader, coordinator := s.apart()
		s.check(s.b.PauseNode(leader))
		s.say("commit: %s", s.commit(x))
		s.b.KillNode(coordinator)
		s.check(s.b.ResumeNode(leader))
		s.check(s.b.RestartNode(coordinator))
		s.say("later: %s", s.until(x, "Complete"))
		s.say("commit again: %s", s.commit(x))
		s.say("marker: %s; visible: %d", s.decided(x), s.visible())
	},
}

// apart opens a transaction whose only partition is led by another node than the one coordinating the transaction, and
// returns it with the two nodes.
func (s *script) apart() (x txn, leader, coordinator int) {
	s.t.Helper()
	s.fresh() // the first transactional id creates __transaction_state
	for adm := s.b.Admin(s.t); ; s.id, s.topic = harness.UniqueName(s.t), s.b.Topic(s.t, 1) {
		meta, err := adm.Metadata(s.ctx(), s.topic)
		s.check(err)
		found := adm.FindTxnCoordinators(s.ctx(), s.id)
		s.check(found.Error())
		leader, coordinator = int(meta.Topics[s.topic].Partitions[0].Leader), int(found[s.id].NodeID)
		if leader > 0 && leader != coordinator {
			break
		}
	}
	x = s.open()
	s.state(x) // s.raw now knows the coordinator and need not ask a node that may be stopped
	return x, leader, coordinator
}
