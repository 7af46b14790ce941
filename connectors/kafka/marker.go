package kafka

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/sql/diag"
)

// A marker is a record that says that the rows of one committable are in their topics: it is written in the transaction
// that writes them. Markers live in partition 0 of a compacted topic, whatever the number of its partitions: a number
// that is raised later must not hide one.
//
// The floor of a sink is a record as well: of checkpoints up to it markers may have been removed, so that the absence
// of one means nothing.

// markerKeep is how long markers are kept at least. A checkpoint is asked about as long as it is the newest; older ones
// only by a restore from a savepoint that was taken and never confirmed.
const markerKeep = 7 * 24 * time.Hour

// markerBatch bounds the markers that one commit removes.
const markerBatch = 1000

// markerID is what a marker belongs to.
type markerID struct {
	lineage string
	ckpt    checkpoint.ID
	subtask int
	sink    checkpoint.SinkID
}

func markerOf(c *checkpoint.Committable) markerID {
	return markerID{c.Lineage, c.Checkpoint, c.Subtask, c.Sink}
}

// key is the marker's record key. The sink comes last, because its name may hold anything.
func (m markerID) key() string {
	return fmt.Sprintf("%s:%d:%d:%s", m.lineage, m.ckpt, m.subtask, m.sink)
}

const floorWord = "floor"

// floorKey is the record key of the floor of m's sink.
func (m markerID) floorKey() string { return fmt.Sprintf("%s:%s::%s", m.lineage, floorWord, m.sink) }

// parseMarker reads a record key; ok is false for keys of others, and m.ckpt and m.subtask are 0 in a floor.
func parseMarker(key string) (m markerID, floor, ok bool) {
	p := strings.SplitN(key, ":", 4)
	if len(p) != 4 {
		return m, false, false
	}
	m.lineage, m.sink = p[0], checkpoint.SinkID(p[3])
	if p[1] == floorWord {
		return m, true, p[2] == ""
	}
	id, err := strconv.ParseUint(p[1], 10, 64)
	st, err2 := strconv.Atoi(p[2])
	m.ckpt, m.subtask = checkpoint.ID(id), st
	return m, false, err == nil && err2 == nil && st >= 0
}

// markerValue is the value of a marker, for people.
type markerValue struct {
	Job   string `json:"job,omitempty"`
	Table string `json:"table,omitempty"`
	Rows  int64  `json:"rows"`
}

// floorValue is the value of a floor.
type floorValue struct {
	Checkpoint checkpoint.ID `json:"checkpoint"`
}

// markerLog is what was read of a marker topic. It is read on from where it ended, once per commit.
type markerLog struct {
	topic string
	next  int64
	id    [16]byte // of the topic, zero when the broker does not tell
	marks map[markerID]time.Time
	order []markerID // oldest first; those removed meanwhile included
	floor map[string]checkpoint.ID
}

func newMarkerLog(topic string) *markerLog {
	return &markerLog{topic: topic, marks: map[markerID]time.Time{}, floor: map[string]checkpoint.ID{}}
}

// apply takes a committed record in.
func (l *markerLog) apply(r *kgo.Record) {
	m, floor, ok := parseMarker(string(r.Key))
	switch {
	case !ok:
	case floor:
		var v floorValue
		if json.Unmarshal(r.Value, &v) == nil {
			l.floor[m.floorKey()] = max(l.floor[m.floorKey()], v.Checkpoint)
		}
	case r.Value == nil:
		delete(l.marks, m)
	default:
		if _, again := l.marks[m]; !again {
			l.order = append(l.order, m)
		}
		l.marks[m] = r.Timestamp
	}
}

// has reports whether m was committed; known is false when its marker may have been removed.
func (l *markerLog) has(m markerID) (committed, known bool) {
	if _, ok := l.marks[m]; ok {
		return true, true
	}
	return false, m.ckpt > l.floor[m.floorKey()]
}

// expired are the oldest markers of m's sink, of checkpoints before m's, that are older than the sink's newest by keep, and
// the floor they leave. Time in which the job was down does not count: nobody had a chance to ask.
func (l *markerLog) expired(m markerID, keep time.Duration) (out []markerID, floor checkpoint.ID) {
	var newest time.Time
	for o, at := range l.marks {
		if o.lineage == m.lineage && o.sink == m.sink && at.After(newest) {
			newest = at
		}
	}
	before := newest.Add(-keep)
	live := l.order[:0]
	for _, o := range l.order {
		at, ok := l.marks[o]
		if !ok {
			continue
		}
		live = append(live, o)
		if o.lineage == m.lineage && o.sink == m.sink && o.ckpt < m.ckpt && at.Before(before) && len(out) < markerBatch {
			out, floor = append(out, o), max(floor, o.ckpt)
		}
	}
	l.order = live
	return out, max(floor, l.floor[m.floorKey()])
}

// errNoMarkers says that the marker topic does not exist.
var errNoMarkers = errors.New("the marker topic does not exist")

// read reads committed records to the end that the topic has now. It waits for transactions of others that are open in
// between, because what is committed behind them shows only then.
func (l *markerLog) read(ctx context.Context, cl *kgo.Client, log *slog.Logger) error {
	adm := kadm.NewClient(cl)
	topics, err := listTopics(ctx, adm, []string{l.topic}, false)
	if err != nil {
		return err
	}
	td := topics[l.topic]
	if errors.Is(td.Err, kerr.UnknownTopicOrPartition) || td.Err == nil && len(td.Partitions) == 0 {
		return errNoMarkers
	}
	if td.Err != nil {
		return td.Err
	}
	if id := [16]byte(td.ID); id != l.id {
		*l = *newMarkerLog(l.topic)
		l.id = id
	}
	ends, err := adm.ListEndOffsets(ctx, l.topic)
	if err == nil {
		err = ends.Error()
	}
	if err != nil {
		return err
	}
	end, _ := ends.Lookup(l.topic, 0)
	for began, told := time.Now(), false; l.next < end.Offset; {
		n, err := l.fetch(ctx, cl.Broker(int(td.Partitions[0].Leader)))
		if err != nil {
			return err
		}
		if n == 0 && !told && time.Since(began) > connectTimeout {
			told = true
			log.Warn("kafka: a commit waits for a transaction of another job that is open in the marker topic", "topic", l.topic, "offset", l.next,
				"hint", "it ends when that job starts again or its transaction times out; give jobs their own 'sink.write-ahead.marker-topic' to keep them apart")
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	return nil
}

// fetch takes in what one request brings and returns by how many offsets it moved on.
func (l *markerLog) fetch(ctx context.Context, b *kgo.Broker) (moved int64, err error) {
	req := kmsg.NewPtrFetchRequest()
	req.ReplicaID, req.MaxBytes, req.SessionEpoch, req.IsolationLevel = -1, 8<<20, -1, 1
	req.MaxWaitMillis, req.MinBytes = 100, 1
	rt := kmsg.NewFetchRequestTopic()
	rt.Topic, rt.TopicID = l.topic, l.id
	rp := kmsg.NewFetchRequestTopicPartition()
	rp.Partition, rp.FetchOffset, rp.PartitionMaxBytes, rp.CurrentLeaderEpoch = 0, l.next, 8<<20, -1
	rt.Partitions = append(rt.Partitions, rp)
	req.Topics = append(req.Topics, rt)
	resp, err := req.RequestWith(ctx, b)
	if err != nil {
		return 0, err
	}
	if err := kerr.ErrorForCode(resp.ErrorCode); err != nil {
		return 0, err
	}
	if len(resp.Topics) != 1 || len(resp.Topics[0].Partitions) != 1 {
		return 0, nil
	}
	p := &resp.Topics[0].Partitions[0]
	if kerr.ErrorForCode(p.ErrorCode) == kerr.OffsetOutOfRange && p.LogStartOffset > l.next {
		return 0, fmt.Errorf("the marker topic %s lost records: it starts at %d", l.topic, p.LogStartOffset)
	}
	if err := kerr.ErrorForCode(p.ErrorCode); err != nil {
		return 0, err
	}
	was := l.next
	fp, next := kgo.ProcessFetchPartition(kgo.ProcessFetchPartitionOpts{Offset: l.next, IsolationLevel: kgo.ReadCommitted(), Topic: l.topic},
		p, kgo.DefaultDecompressor(), nil)
	if fp.Err != nil {
		return 0, fmt.Errorf("marker topic %s at %d: %w", l.topic, l.next, fp.Err)
	}
	for _, r := range fp.Records {
		l.apply(r)
	}
	l.next = max(next, l.next)
	return l.next - was, nil
}

// ensureMarkers makes the marker topic when it is missing and refuses one whose records would be deleted by age. It
// returns the topic's id.
func (s *sink) ensureMarkers(ctx context.Context) ([16]byte, error) {
	topic := s.x.v.String(markerTopicOption)
	cl, err := connect(ctx, s.c)
	if err != nil {
		return [16]byte{}, s.at(err)
	}
	defer cl.Close()
	adm := kadm.NewClient(cl)
	id, missing, err := s.findMarkers(ctx, adm)
	if err != nil || !missing {
		return id, err
	}
	set := func(v string) *string { return &v }
	r, err := adm.CreateTopic(ctx, 1, -1, map[string]*string{"cleanup.policy": set("compact"), "segment.ms": set("3600000")}, topic)
	if err == nil {
		err = r.Err
	}
	if err != nil && !errors.Is(err, kerr.TopicAlreadyExists) {
		return id, diag.New(diag.External, s.spec.Table.Options.Pos(markerTopicOption), "table %s: marker topic %s does not exist and cannot be created", s.spec.Table.Name, topic).Wrap(err).
			WithDetail("'sink.commit-protocol' = 'write-ahead' notes there which checkpoints are in the topics").
			WithHint("create it: %s; or grant CREATE on it", createMarkers(topic))
	}
	for deadline := time.Now().Add(connectTimeout); ; { // a broker answers before it knows the topic itself
		if id, missing, err = s.findMarkers(ctx, adm); err != nil || !missing || time.Now().After(deadline) {
			break
		}
		if err := sleep(ctx, 100*time.Millisecond); err != nil {
			return id, err
		}
	}
	if err == nil && missing {
		err = s.at(diag.New(diag.External, diag.Pos{}, "marker topic %s was created and is not there yet", topic))
	}
	return id, err
}

func createMarkers(topic string) string {
	return "kafka-topics.sh --create --topic " + topic + " --partitions 1 --config cleanup.policy=compact"
}

// findMarkers looks for the marker topic and changes nothing.
func (s *sink) findMarkers(ctx context.Context, adm *kadm.Client) (id [16]byte, missing bool, err error) {
	topic, pos := s.x.v.String(markerTopicOption), s.spec.Table.Options.Pos(markerTopicOption)
	topics, err := listTopics(ctx, adm, []string{topic}, false)
	if err != nil {
		return id, false, s.at(diag.New(diag.External, diag.Pos{}, "kafka does not list topics").Wrap(err))
	}
	td := topics[topic]
	if errors.Is(td.Err, kerr.UnknownTopicOrPartition) {
		return id, true, nil
	}
	if td.Err != nil {
		return id, false, diag.New(diag.External, pos, "table %s: marker topic %s cannot be used", s.spec.Table.Name, topic).Wrap(td.Err).
			WithHint("grant READ, WRITE and DESCRIBE on topic %s", topic)
	}
	configs, err := adm.DescribeTopicConfigs(ctx, topic)
	if err != nil {
		return [16]byte(td.ID), false, nil // not allowed to read settings: whoever made the topic answers for them
	}
	for _, rc := range configs {
		for _, c := range rc.Configs {
			if c.Key == "cleanup.policy" && c.Value != nil && *c.Value != "compact" {
				return id, false, diag.New(diag.Config, pos, "table %s: marker topic %s deletes records by age", s.spec.Table.Name, topic).
					WithDetail("its cleanup.policy is '%s'; a marker that is deleted too early makes rows repeat", *c.Value).
					WithHint("kafka-configs.sh --alter --topic %s --add-config cleanup.policy=compact, or name another with '%s'", topic, markerTopicOption)
			}
		}
	}
	return [16]byte(td.ID), false, nil
}
