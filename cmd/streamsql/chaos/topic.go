package chaos

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/streamsql/streamsql/catalog"
	"github.com/streamsql/streamsql/connectors/kafka"
	"github.com/streamsql/streamsql/sql/diag"
	"github.com/streamsql/streamsql/sql/types"
)

// topicPlace keeps the shadows of a topic: topics of the same cluster, with as many partitions.
type topicPlace struct {
	r     *runner
	t     *catalog.Table
	topic string
	mode  types.ChangelogMode
	adm   *kadm.Client // opened by the first create
	parts int32
	conf  map[string]*string // of shadows
}

// likeReal are the settings of a topic that decide which records it takes: shadows have them, too.
var likeReal = []string{"max.message.bytes", "message.timestamp.type", "message.timestamp.after.max.ms", "message.timestamp.before.max.ms", "message.timestamp.difference.max.ms"}

// settleFor bounds how long the markers of committed transactions are waited for.
const settleFor = 30 * time.Second

func (p *topicPlace) name(run string) string { return p.topic + suffix + p.r.o.ID + "_" + run }

// markers is the topic of write-ahead sinks' notes in this run of chaos.
func (p *topicPlace) markers() string { return "streamsql-commits" + suffix + p.r.o.ID }

func (p *topicPlace) edits(run string) []edit {
	out := []edit{{"topic", p.name(run)}}
	if prefix, ok := p.t.Options.Get("sink.transactional-id-prefix"); ok {
		out = append(out, edit{"sink.transactional-id-prefix", prefix + suffix + p.r.o.ID + "_" + run})
	}
	if protocol, _ := p.t.Options.Get("sink.commit-protocol"); protocol == "write-ahead" {
		out = append(out, edit{"sink.write-ahead.marker-topic", p.markers()})
	}
	return out
}

func (p *topicPlace) open(ctx context.Context) error {
	if p.adm != nil {
		return nil
	}
	cl, err := kafka.Dial(ctx, p.t, p.r.o.Embedded)
	if err != nil {
		return err
	}
	p.adm = kadm.NewClient(cl)
	topics, err := p.adm.ListTopics(ctx, p.topic)
	if err != nil {
		return p.failed("cannot be described", err)
	}
	p.parts = -1 // as the cluster makes new topics
	if d := topics[p.topic]; d.Err == nil && len(d.Partitions) > 0 {
		p.parts = int32(len(d.Partitions))
	}
	// A record can carry the time of its row, which is old enough for retention to delete it.
	forever := "-1"
	p.conf = map[string]*string{"retention.ms": &forever, "retention.bytes": &forever}
	// Not being allowed to read the real topic's settings is fine: most have none of their own.
	if all, err := p.adm.DescribeTopicConfigs(ctx, p.topic); err == nil {
		if rc, err := all.On(p.topic, nil); err == nil {
			for _, c := range rc.Configs {
				if c.Source == kmsg.ConfigSourceDynamicTopicConfig && slices.Contains(likeReal, c.Key) {
					p.conf[c.Key] = c.Value
				}
			}
		}
	}
	return nil
}

// ours reports names with this check's id.
func (p *topicPlace) ours(name string) bool {
	_, after, ok := strings.Cut(name, suffix+p.r.o.ID)
	return ok && (after == "" || after[0] == '_' || after[0] == '-')
}

func (p *topicPlace) claim(ctx context.Context) error {
	if err := p.open(ctx); err != nil {
		return err
	}
	topics, err := p.adm.ListTopics(ctx)
	if err != nil {
		return p.failed("cannot be listed", err)
	}
	for _, name := range topics.Names() {
		if p.ours(name) {
			return taken(p.t, p.r.o.ID, "topic "+name)
		}
	}
	return nil
}

func (p *topicPlace) failed(what string, err error) error {
	return diag.New(diag.External, diag.Pos{}, "table %s: topics %s%s%s… %s", p.t.Name, p.topic, suffix, p.r.o.ID, what).Wrap(err)
}

func (p *topicPlace) create(ctx context.Context, run string) error {
	if err := p.open(ctx); err != nil {
		return err
	}
	name := p.name(run)
	made, err := p.adm.CreateTopics(ctx, p.parts, -1, p.conf, name)
	if err == nil {
		err = made[name].Err
	}
	if err != nil {
		return p.failed("cannot be made", err)
	}
	return nil
}

// answers asks the leaders of the run's topic.
func (p *topicPlace) answers(ctx context.Context, run string) error {
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	if err := p.open(ctx); err != nil {
		return err
	}
	ends, err := p.adm.ListEndOffsets(ctx, p.name(run))
	if err == nil {
		err = ends.Error()
	}
	return err
}

// ends waits until readers of committed records can see the whole topic, and gives the offsets to read to. behind is how many
// records an open transaction holds back after the wait.
func (p *topicPlace) ends(ctx context.Context, run string) (to map[int32]int64, behind int64, err error) {
	name := p.name(run)
	for deadline := time.Now().Add(settleFor); ; {
		// The ends first: what is stable then can only have grown.
		ends, err := p.adm.ListEndOffsets(ctx, name)
		if err == nil {
			err = ends.Error()
		}
		if err != nil {
			return nil, 0, p.failed("cannot be read", err)
		}
		stable, err := p.adm.ListCommittedOffsets(ctx, name)
		if err == nil {
			err = stable.Error()
		}
		if err != nil {
			return nil, 0, p.failed("cannot be read", err)
		}
		to, behind = map[int32]int64{}, 0
		ends.Each(func(e kadm.ListedOffset) {
			s, _ := stable.Lookup(name, e.Partition)
			behind += max(0, e.Offset-s.Offset)
			if s.Offset > 0 {
				to[e.Partition] = s.Offset
			}
		})
		if behind == 0 || time.Now().After(deadline) {
			return to, behind, nil
		}
		select {
		case <-ctx.Done():
			return nil, 0, ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func (p *topicPlace) residue(ctx context.Context, run string) ([]string, error) {
	_, behind, err := p.ends(ctx, run)
	if err != nil || behind == 0 {
		return nil, err
	}
	return []string{fmt.Sprintf("topic %s: %d records stay behind an open transaction", p.name(run), behind)}, nil
}

func (p *topicPlace) read(ctx context.Context, run string) (rows, error) {
	left, _, err := p.ends(ctx, run)
	if err != nil {
		return rows{}, err
	}
	if p.mode == types.Retract {
		// Which intermediate changes there are depends on how rows meet in batches; what they add up to does not.
		return p.r.query(ctx, run, "SELECT * FROM "+quoteName(p.t.Name))
	}
	out := bagOf()
	if p.mode == types.Upsert {
		out = keyed()
	}
	if len(left) == 0 {
		return out, nil
	}
	// Control records are kept only to see that the end was reached.
	cl, err := kafka.Dial(ctx, p.t, p.r.o.Embedded, kgo.ConsumeTopics(p.name(run)), kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.KeepControlRecords())
	if err != nil {
		return rows{}, err
	}
	defer cl.Close()
	for len(left) > 0 {
		fs := cl.PollFetches(ctx)
		if err := fs.Err(); err != nil {
			return rows{}, p.failed("cannot be read", err)
		}
		fs.EachRecord(func(rec *kgo.Record) {
			if end, ok := left[rec.Partition]; ok && rec.Offset < end && !rec.Attrs.IsControl() {
				out.record(rec)
			}
			if end, ok := left[rec.Partition]; ok && rec.Offset+1 >= end {
				delete(left, rec.Partition)
			}
		})
	}
	return out, nil
}

// record adds a record: of a topic by key, its key's newest value.
func (r *rows) record(rec *kgo.Record) {
	if r.byKey == nil {
		text := string(rec.Value)
		if rec.Key != nil {
			text = string(rec.Key) + " => " + text
		}
		for _, h := range rec.Headers {
			text += fmt.Sprintf(" [%s=%s]", h.Key, h.Value)
		}
		r.bag[text]++
		return
	}
	if rec.Value == nil {
		delete(r.byKey, string(rec.Key))
		return
	}
	r.byKey[string(rec.Key)] = string(rec.Value)
}

func (p *topicPlace) drop(ctx context.Context, run string) error {
	_, err := p.adm.DeleteTopics(ctx, p.name(run))
	if err != nil {
		return p.failed("cannot be removed", err)
	}
	return nil
}

// clean removes every topic and group of this run, also those that jobs made.
func (p *topicPlace) clean(ctx context.Context, keep bool) error {
	if err := p.open(ctx); err != nil {
		return err
	}
	defer func() { p.adm.Close(); p.adm = nil }()
	if keep {
		return nil
	}
	topics, err := p.adm.ListTopics(ctx)
	if err != nil {
		return p.failed("cannot be removed", err)
	}
	var names []string
	for _, n := range topics.Names() {
		if p.ours(n) {
			names = append(names, n)
		}
	}
	if len(names) > 0 {
		gone, err := p.adm.DeleteTopics(ctx, names...)
		if err == nil {
			err = gone.Error()
		}
		if err != nil && !errors.Is(err, kerr.UnknownTopicOrPartition) {
			return p.failed("cannot be removed", err)
		}
	}
	// The groups are leases of jobs; they expire by themselves where they may not be removed.
	if groups, err := p.adm.ListGroups(ctx); err == nil {
		var names []string
		for _, g := range groups.Groups() {
			if p.ours(g) {
				names = append(names, g)
			}
		}
		if len(names) > 0 {
			_, _ = p.adm.DeleteGroups(ctx, names...)
		}
	}
	return nil
}

// quoteName is an identifier in a query.
func quoteName(s string) string { return "`" + strings.ReplaceAll(s, "`", "``") + "`" }
