package kafka

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/streamsql/streamsql/catalog"
	"github.com/streamsql/streamsql/connectors"
	"github.com/streamsql/streamsql/sql/diag"
)

// txnMargin is added to interval and timeout of checkpoints: time for the commit itself and for a restart.
const txnMargin = 60 * time.Second

// Preflight implements connectors.Sink.
func (s *sink) Preflight(ctx context.Context) error {
	k, err := s.configure(ctx)
	if err != nil {
		return err
	}
	if s.owner != nil {
		if k.noTxns != "" {
			return diag.New(diag.External, s.spec.Table.Options.Pos("connector"), "table %s: the kafka cluster has no transactions", s.spec.Table.Name).
				WithDetail("it does not offer %s in a version that exactly-once needs (Kafka 2.5 or newer)", k.noTxns).
				WithHint("set 'sink.delivery-guarantee' = 'at-least-once', or use a newer cluster")
		}
		if err := checkTimeout(s.spec.Table, s.spec.Job, k.maxTimeoutMs, s.timeout(k), s.c.txnTimeoutMs > 0); err != nil {
			return err
		}
		if k.maxTimeoutMs == 0 {
			s.log.Warn("kafka: transaction.max.timeout.ms of the brokers cannot be read; the timeout is checked when ids are initialised",
				"table", s.spec.Table.Name, "timeout_ms", s.timeout(k))
		}
		if err := s.checkRival(ctx); err != nil {
			return err
		}
	}
	return s.checkTopics(ctx)
}

// checkTimeout refuses a transaction timeout that checkpoints can outlive, and one the brokers refuse.
func checkTimeout(t *catalog.Table, job connectors.JobInfo, brokerMax, timeout int64, given bool) error {
	pos := t.Options.Pos("properties.transaction.timeout.ms")
	if brokerMax > 0 && timeout > brokerMax {
		return diag.New(diag.Config, pos, "table %s: transaction timeout is larger than the brokers allow", t.Name).
			WithDetail("'properties.transaction.timeout.ms' is %d, transaction.max.timeout.ms of the brokers is %d", timeout, brokerMax).
			WithHint("remove the option (the default is the brokers' maximum), set it to at most %d, or raise transaction.max.timeout.ms on the brokers", brokerMax)
	}
	need := job.CheckpointInterval + job.CheckpointTimeout + txnMargin.Milliseconds()
	if job.CheckpointInterval == 0 || timeout >= need {
		return nil
	}
	e := diag.New(diag.Config, pos, "table %s: a transaction can time out before its checkpoint commits it", t.Name).
		WithDetail("transaction timeout %d ms < checkpoint interval %d ms + checkpoint timeout %d ms + margin %d ms = %d ms; brokers allow up to %s",
			timeout, job.CheckpointInterval, job.CheckpointTimeout, txnMargin.Milliseconds(), need, maxText(brokerMax))
	if given && (brokerMax == 0 || brokerMax >= need) {
		return e.WithHint("set 'properties.transaction.timeout.ms' = '%d' or remove it (the default is the brokers' maximum)", need)
	}
	room := timeout - txnMargin.Milliseconds() - job.CheckpointInterval
	if room > 0 {
		return e.WithHint("SET 'execution.checkpointing.timeout' = '%d s', or raise transaction.max.timeout.ms on the brokers to at least %d", room/1000, need)
	}
	return e.WithHint("raise transaction.max.timeout.ms on the brokers to at least %d, or lower 'execution.checkpointing.interval' and 'execution.checkpointing.timeout'", need)
}

func maxText(ms int64) string {
	if ms == 0 {
		return "an unknown time"
	}
	return fmt.Sprintf("%d ms", ms)
}

// checkRival looks for another live owner of the prefix, without waiting and without becoming one.
func (s *sink) checkRival(ctx context.Context) error {
	s.owner.mu.Lock()
	held := s.owner.lease != nil
	s.owner.mu.Unlock()
	if held {
		return nil
	}
	cl, err := connect(ctx, s.c)
	if err != nil {
		return s.at(err)
	}
	defer cl.Close()
	hs, err := leaseHolders(ctx, cl, leaseGroup(s.owner.prefix), "")
	if err != nil {
		if forbidden(err) {
			return nil // said when the lease is taken
		}
		return s.at(err)
	}
	me := holder{Lineage: s.spec.Job.Lineage, Fence: s.spec.Job.Fence}
	for _, h := range hs {
		if !h.yields(me) {
			// A killed owner looks alive for some seconds more; taking the lease waits for that.
			s.log.Warn("kafka: the transactional prefix has another owner", "table", s.spec.Table.Name, "prefix", s.owner.prefix, "owner", h.String())
		}
	}
	return nil
}

// checkTopics warns of settings that weaken what is written. Missing topics were refused by configure.
func (s *sink) checkTopics(ctx context.Context) error {
	names := make([]string, 0, len(s.topics))
	for n := range s.topics {
		names = append(names, n)
	}
	if len(names) == 0 {
		if s.x.pattern != nil {
			s.log.Warn("kafka: no topic matches yet", "table", s.spec.Table.Name, "pattern", s.x.v.String("topic-pattern"))
		}
		return nil
	}
	cl, err := connect(ctx, s.c)
	if err != nil {
		return s.at(err)
	}
	defer cl.Close()
	configs, err := kadm.NewClient(cl).DescribeTopicConfigs(ctx, names...)
	if err != nil {
		return nil // no permission to read settings: nothing to warn of
	}
	for _, rc := range configs {
		for _, c := range rc.Configs {
			if c.Value == nil {
				continue
			}
			switch {
			case c.Key == "cleanup.policy" && *c.Value == "compact" && !s.x.upsert:
				s.log.Warn("kafka: topic is compacted, so rows with equal keys replace each other", "table", s.spec.Table.Name, "topic", rc.Name)
			case c.Key == "cleanup.policy" && *c.Value != "compact" && s.x.upsert:
				s.log.Warn("kafka: topic is not compacted: the newest record of a key can be deleted by retention", "table", s.spec.Table.Name, "topic", rc.Name)
			case c.Key == "min.insync.replicas" && s.c.servers[0] != s.spec.Embedded:
				if n, err := strconv.Atoi(*c.Value); err == nil && n < 2 {
					s.log.Warn("kafka: min.insync.replicas is 1, so losing one broker can lose acknowledged rows", "table", s.spec.Table.Name, "topic", rc.Name)
				}
			}
		}
	}
	return nil
}

// explainTopic is the error of a topic that cannot be used.
func explainTopic(err error, t *catalog.Table, topic string) error {
	pos := t.Options.Pos("topic")
	switch {
	case errors.Is(err, kerr.UnknownTopicOrPartition):
		return diag.New(diag.External, pos, "table %s: topic %s does not exist", t.Name, topic).
			WithHint("create it: kafka-topics.sh --create --topic %s --partitions N", topic)
	case errors.Is(err, kerr.TopicAuthorizationFailed):
		return diag.New(diag.External, pos, "table %s: kafka does not allow topic %s", t.Name, topic).Wrap(err).
			WithHint("grant READ (source; also for a sink, to prove outcomes after a crash) or WRITE (sink) on the topic")
	}
	return diag.New(diag.External, pos, "table %s: topic %s cannot be used", t.Name, topic).Wrap(err)
}
