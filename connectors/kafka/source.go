package kafka

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/connectors"
	"github.com/streamsql/streamsql/sql/diag"
)

// source is a table being read.
type source struct {
	spec  connectors.SourceSpec
	x     *table
	c     *client
	log   *slog.Logger
	start startMode
	bound boundMode

	mu       sync.Mutex
	cl       *kgo.Client // made when first needed
	adm      *kadm.Client
	ids      map[string][16]byte // topic ids as first seen
	groupSad bool                // a failed group commit was reported
}

func newSource(spec connectors.SourceSpec, upsert bool) (connectors.Source, error) {
	x, err := parseTable(spec.Table, upsert)
	if err != nil {
		return nil, err
	}
	log := spec.Job.Log
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	c, err := newClient(spec.Table, spec.Embedded, log)
	if err != nil {
		return nil, err
	}
	s := &source{spec: spec, x: x, c: c, log: log, ids: map[string][16]byte{}}
	if s.start, err = x.startMode(c); err != nil {
		return nil, err
	}
	if s.bound, err = x.boundMode(c); err != nil {
		return nil, err
	}
	if spec.Range != nil {
		s.bound.mode = rangeBound
	}
	if s.start.defaulted && !upsert {
		log.Info("kafka: 'scan.startup.mode' is not given", "table", spec.Table.Name, "start", s.start.mode)
	}
	if c.isolationGiven && c.isolation == kgo.ReadUncommitted() {
		log.Warn("kafka: rows of open and aborted transactions are read ('properties.isolation.level' = 'read_uncommitted')", "table", spec.Table.Name)
	}
	return s, nil
}

// admin is the source's client for questions.
func (s *source) admin(ctx context.Context) (*kadm.Client, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.adm != nil {
		return s.adm, nil
	}
	cl, err := connect(ctx, s.c)
	if err != nil {
		var e *diag.Error
		if errors.As(err, &e) {
			return nil, diag.New(e.Code, s.spec.Table.Options.Pos("connector"), "table %s: %s", s.spec.Table.Name, e.Message).
				Wrap(e.Err).WithDetail("%s", e.Detail).WithHint("%s", e.Hint).WithRule(e.Rule)
		}
		return nil, err
	}
	s.cl, s.adm = cl, kadm.NewClient(cl)
	return s.adm, nil
}

func (s *source) external(err error, format string, args ...any) error {
	return diag.New(diag.External, s.spec.Table.Options.Pos("connector"), "table "+s.spec.Table.Name+": "+format, args...).Wrap(err)
}

// Splits implements connectors.Source.
func (s *source) Splits(ctx context.Context) ([]checkpoint.Split, error) {
	topics, err := s.topics(ctx)
	if err != nil {
		return nil, err
	}
	var out []checkpoint.Split
	for name, d := range topics {
		for _, p := range d.Partitions {
			out = append(out, partition{name, p.Partition}.split())
		}
	}
	slices.Sort(out)
	return out, nil
}

// topics are the table's topics as they are now. One that was created again under the same name is an error: its
// offsets mean other records.
func (s *source) topics(ctx context.Context) (kadm.TopicDetails, error) {
	adm, err := s.admin(ctx)
	if err != nil {
		return nil, err
	}
	all, err := listTopics(ctx, adm, s.x.topics, s.c.servers[0] != s.spec.Embedded)
	if errors.Is(err, kerr.TopicAuthorizationFailed) {
		return nil, explainTopic(err, s.spec.Table, s.x.v.String("topic"))
	}
	if err != nil {
		return nil, s.external(err, "kafka does not list topics")
	}
	out := kadm.TopicDetails{}
	for name, d := range all {
		if s.x.pattern != nil && !s.x.pattern.MatchString(name) {
			continue
		}
		if errors.Is(d.Err, kerr.UnknownTopicOrPartition) && s.c.servers[0] == s.spec.Embedded {
			if err := createTopic(ctx, adm, name); err != nil {
				return nil, s.external(err, "topic %s cannot be created on the embedded broker", name)
			}
			return s.topics(ctx)
		}
		if d.Err != nil {
			return nil, explainTopic(d.Err, s.spec.Table, name)
		}
		if err := s.checkID(name, d.ID); err != nil {
			return nil, err
		}
		out[name] = d
	}
	return out, nil
}

// createTopic makes a topic with the broker's defaults. On the embedded broker, reading a table before anything was
// written to it should wait for rows instead of failing.
func createTopic(ctx context.Context, adm *kadm.Client, topic string) error {
	r, err := adm.CreateTopic(ctx, -1, -1, nil, topic)
	if err == nil {
		err = r.Err
	}
	if errors.Is(err, kerr.TopicAlreadyExists) {
		return nil
	}
	return err
}

func (s *source) checkID(topic string, id [16]byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if old, ok := s.ids[topic]; ok && old != id && id != [16]byte{} && old != [16]byte{} {
		return s.recreated(topic)
	}
	s.ids[topic] = id
	return nil
}

func (s *source) recreated(topic string) error {
	return diag.New(diag.External, s.spec.Table.Options.Pos("topic"), "table %s: topic %s was deleted and created again", s.spec.Table.Name, topic).
		WithDetail("the offsets in the checkpoint belong to the old topic; going on could skip or repeat records").
		WithHint("start the job without its checkpoint to read the new topic")
}

// Open implements connectors.Source.
func (s *source) Open(ctx context.Context, splits []checkpoint.Position) (connectors.Reader, error) {
	r, err := newReader(s)
	if err != nil {
		return nil, err
	}
	if err := r.assign(ctx, splits, true); err != nil {
		_ = r.Close()
		return nil, err
	}
	return r, nil
}

// DiscoveryInterval implements connectors.Source. Bounded tables are what they were at the start.
func (s *source) DiscoveryInterval() int64 {
	if s.bound.mode != "unbounded" {
		return 0
	}
	return s.x.v.Duration("scan.topic-partition-discovery.interval").Milliseconds()
}

// Committed implements connectors.Source: it writes the group's offsets, for monitoring. Failing is reported once and
// harms nothing: a restore uses the checkpoint only.
func (s *source) Committed(ctx context.Context, positions []checkpoint.Position) {
	if s.c.group == "" {
		return
	}
	offsets := kadm.Offsets{}
	for _, p := range positions {
		tp, err := parseSplit(p.Split)
		if err != nil || p.Next == nil {
			continue
		}
		if at, err := decodePosition(p.Next); err == nil {
			offsets.AddOffset(tp.topic, tp.num, at.next, at.epoch)
		}
	}
	adm, err := s.admin(ctx)
	if err == nil && len(offsets) > 0 {
		cctx, cancel := context.WithTimeout(ctx, 10*time.Second)
		defer cancel()
		var r kadm.OffsetResponses
		if r, err = adm.CommitOffsets(cctx, s.c.group, offsets); err == nil {
			err = r.Error()
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil && !s.groupSad && ctx.Err() == nil {
		s.log.Warn("kafka: group offsets cannot be written (they are for monitoring only)", "table", s.spec.Table.Name, "group", s.c.group, "error", err)
	}
	s.groupSad = err != nil
}

// Close implements connectors.Source.
func (s *source) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cl != nil {
		s.cl.Close()
		s.cl, s.adm = nil, nil
	}
	return nil
}
