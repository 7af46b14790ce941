package kafka

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/streamsql/streamsql/catalog"
	"github.com/streamsql/streamsql/connectors"
	"github.com/streamsql/streamsql/sql/diag"
	"github.com/streamsql/streamsql/sql/lint"
)

// Preflight implements connectors.Sink.
func (s *sink) Preflight(ctx context.Context) error {
	in, err := s.Inspect(ctx)
	for _, f := range in.Findings {
		s.log.Warn("kafka: "+f.Message, "rule", f.Code, "table", s.spec.Table.Name, "reason", f.Detail)
	}
	return err
}

// Inspect implements connectors.Inspector.
func (s *sink) Inspect(ctx context.Context) (in connectors.Inspection, err error) {
	k, err := s.configure(ctx)
	if err != nil {
		return in, err
	}
	if s.owner != nil {
		if k.noTxns != "" {
			return in, diag.New(diag.External, s.spec.Table.Options.Pos("connector"), "table %s: the kafka cluster has no transactions", s.spec.Table.Name).
				WithDetail("it does not offer %s in a version that exactly-once needs (Kafka 2.5 or newer)", k.noTxns).
				WithHint("set 'sink.delivery-guarantee' = 'at-least-once', or use a newer cluster").WithRule("SSQL-E602")
		}
		max := "transaction.max.timeout.ms cannot be read"
		if k.maxTimeoutMs > 0 {
			max = fmt.Sprintf("transaction.max.timeout.ms is %d", k.maxTimeoutMs)
		}
		used := s.timeout(k)
		if s.x.ahead() {
			used = s.aheadTimeout(k)
		}
		in.Facts = append(in.Facts, fmt.Sprintf("the brokers take transactions (transaction.version %d); %s, the timeout used is %d ms", k.tv, max, used))
		warnings, err := checkTimeout(s.spec.Table, s.timedJob(), k.maxTimeoutMs, s.timeout(k), s.c.txnTimeoutMs > 0)
		if err != nil {
			return in, err
		}
		in.Findings = append(in.Findings, warnings...)
		if s.x.ahead() {
			if err := s.inspectMarkers(ctx, &in); err != nil {
				return in, err
			}
		}
		if k.maxTimeoutMs == 0 {
			in.Findings = append(in.Findings, lint.Finding{Code: "SSQL-W605", Table: s.spec.Table.Name, Option: "connector",
				Message: "table " + s.spec.Table.Name + ": transaction.max.timeout.ms of the brokers cannot be read",
				Detail:  fmt.Sprintf("the timeout of %d ms is checked when ids are initialised", s.timeout(k)),
				Hint:    "grant DESCRIBE_CONFIGS on the cluster"})
		}
		rivals, err := s.rivals(ctx)
		if err != nil {
			return in, err
		}
		in.Findings = append(in.Findings, rivals...)
	}
	return in, s.inspectTopics(ctx, &in)
}

// timedJob is the job as far as a transaction has to outlive its checkpoints: with write-ahead it lives for one commit.
func (s *sink) timedJob() connectors.JobInfo {
	j := s.spec.Job
	if s.x.ahead() {
		j.CheckpointInterval = 0
	}
	return j
}

// inspectMarkers looks at the marker topic, which a start would make.
func (s *sink) inspectMarkers(ctx context.Context, in *connectors.Inspection) error {
	cl, err := connect(ctx, s.c)
	if err != nil {
		return s.at(err)
	}
	defer cl.Close()
	_, missing, err := s.findMarkers(ctx, kadm.NewClient(cl))
	fact := "marker topic " + s.x.v.String(markerTopicOption) + " is there and compacted"
	if missing {
		fact = "marker topic " + s.x.v.String(markerTopicOption) + " does not exist; the start creates it, compacted"
	}
	in.Facts = append(in.Facts, fact)
	return err
}

// rivals looks for other live owners of the prefix, without waiting and without becoming one.
func (s *sink) rivals(ctx context.Context) ([]lint.Finding, error) {
	s.owner.mu.Lock()
	held := s.owner.lease != nil
	s.owner.mu.Unlock()
	if held {
		return nil, nil
	}
	cl, err := connect(ctx, s.c)
	if err != nil {
		return nil, s.at(err)
	}
	defer cl.Close()
	hs, err := leaseHolders(ctx, cl, leaseGroup(s.owner.prefix), "")
	if err != nil {
		if forbidden(err) {
			return nil, nil // said when the lease is taken
		}
		return nil, s.at(err)
	}
	me := holder{Lineage: s.spec.Job.Lineage, Fence: s.spec.Job.Fence}
	var out []lint.Finding
	for _, h := range hs {
		if !h.yields(me) {
			// A killed owner looks alive for some seconds more; taking the lease waits for that.
			out = append(out, lint.Finding{Code: "SSQL-W606", Table: s.spec.Table.Name, Option: "sink.transactional-id-prefix",
				Message: fmt.Sprintf("table %s: transactional prefix '%s' is held by a live job", s.spec.Table.Name, s.owner.prefix),
				Detail:  "its owner is " + h.String() + "; unless that is this job, a start would be refused",
				Hint:    "stop the other job, or give this one its own 'sink.transactional-id-prefix'"})
		}
	}
	return out, nil
}

// inspectTopics finds settings that weaken what is written. Missing topics were refused by configure.
func (s *sink) inspectTopics(ctx context.Context, in *connectors.Inspection) error {
	names := slices.Sorted(maps.Keys(s.topics))
	table := s.spec.Table.Name
	if len(names) == 0 {
		if s.x.pattern != nil {
			in.Findings = append(in.Findings, lint.Finding{Code: "SSQL-W607", Table: table, Option: "topic-pattern",
				Message: fmt.Sprintf("table %s: no topic matches '%s' yet", table, s.x.v.String("topic-pattern")),
				Hint:    "create the topics, or correct the pattern"})
		}
		return nil
	}
	for _, n := range names {
		in.Facts = append(in.Facts, fmt.Sprintf("topic %s has %d partitions", n, s.partitions[n]))
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
			if f := s.topicSetting(rc.Name, c.Key, *c.Value); f.Code != "" {
				f.Table, f.Option = table, "topic"
				f.Message = "table " + table + ": " + f.Message
				in.Findings = append(in.Findings, f)
			}
		}
	}
	return nil
}

// topicSetting is what is weak about a setting of a topic; its code is "" when nothing is.
func (s *sink) topicSetting(topic, key, value string) lint.Finding {
	switch {
	case key == "cleanup.policy" && value == "compact" && !s.x.upsert:
		return lint.Finding{Code: "SSQL-W608", Message: "topic " + topic + " is compacted, so rows with equal keys replace each other",
			Hint: "kafka-configs.sh --alter --topic " + topic + " --add-config cleanup.policy=delete, or use 'connector' = 'upsert-kafka'"}
	case key == "cleanup.policy" && value != "compact" && s.x.upsert:
		return lint.Finding{Code: "SSQL-W608", Message: "topic " + topic + " is not compacted: the newest record of a key can be deleted by retention",
			Hint: "kafka-configs.sh --alter --topic " + topic + " --add-config cleanup.policy=compact"}
	case key == "min.insync.replicas" && s.c.servers[0] != s.spec.Embedded:
		if n, err := strconv.Atoi(value); err == nil && n < 2 {
			return lint.Finding{Code: "SSQL-W609", Message: "min.insync.replicas of topic " + topic + " is 1, so losing one broker can lose acknowledged rows",
				Hint: "kafka-configs.sh --alter --topic " + topic + " --add-config min.insync.replicas=2, with 3 replicas"}
		}
	}
	return lint.Finding{}
}

// explainTopic is the error of a topic that cannot be used.
func explainTopic(err error, t *catalog.Table, topic string) error {
	pos := t.Options.Pos("topic")
	switch {
	case errors.Is(err, kerr.UnknownTopicOrPartition):
		return diag.New(diag.External, pos, "table %s: topic %s does not exist", t.Name, topic).
			WithHint("create it: kafka-topics.sh --create --topic %s --partitions N", topic).WithRule("SSQL-E601")
	case errors.Is(err, kerr.TopicAuthorizationFailed):
		return diag.New(diag.External, pos, "table %s: kafka does not allow topic %s", t.Name, topic).Wrap(err).
			WithHint("grant READ (source; also for a sink, to prove outcomes after a crash) or WRITE (sink) on the topic").WithRule("SSQL-E610")
	}
	return diag.New(diag.External, pos, "table %s: topic %s cannot be used", t.Name, topic).Wrap(err)
}
