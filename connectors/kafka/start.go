package kafka

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/streamsql/streamsql/sql/diag"
)

// startMode is where reading starts without a checkpoint.
type startMode struct {
	mode      string
	defaulted bool
	millis    int64
	offsets   map[int32]int64
}

// boundMode is where reading ends.
type boundMode struct {
	mode    string
	millis  int64
	offsets map[int32]int64
}

func (x *table) startMode(c *client) (startMode, error) {
	m := startMode{mode: "earliest-offset"}
	if x.upsert {
		return m, nil // a table by key needs every record
	}
	if m.defaulted = !x.v.Has("scan.startup.mode"); !m.defaulted {
		m.mode = x.v.Enum("scan.startup.mode")
	} else if c.group != "" {
		m.mode = "group-offsets"
	}
	var err error
	switch m.mode {
	case "group-offsets":
		err = x.needGroup("scan.startup.mode", c)
	case "timestamp":
		err = x.need("scan.startup.mode", "timestamp", "scan.startup.timestamp-millis")
		m.millis = x.v.Int("scan.startup.timestamp-millis")
	case "specific-offsets":
		if err = x.need("scan.startup.mode", m.mode, "scan.startup.specific-offsets"); err == nil {
			m.offsets, err = x.specificOffsets("scan.startup.specific-offsets")
		}
		if err == nil && x.single() == "" {
			err = x.fail("scan.startup.specific-offsets", "'scan.startup.mode' = 'specific-offsets' needs exactly one topic")
		}
	}
	if err == nil {
		err = x.unused(m.mode, "scan.startup.mode", map[string]string{"scan.startup.timestamp-millis": "timestamp", "scan.startup.specific-offsets": "specific-offsets"})
	}
	return m, err
}

func (x *table) boundMode(c *client) (boundMode, error) {
	m := boundMode{mode: x.v.Enum("scan.bounded.mode")}
	var err error
	switch m.mode {
	case "group-offsets":
		err = x.needGroup("scan.bounded.mode", c)
	case "timestamp":
		err = x.need("scan.bounded.mode", "timestamp", "scan.bounded.timestamp-millis")
		m.millis = x.v.Int("scan.bounded.timestamp-millis")
	case "specific-offsets":
		if err = x.need("scan.bounded.mode", m.mode, "scan.bounded.specific-offsets"); err == nil {
			m.offsets, err = x.specificOffsets("scan.bounded.specific-offsets")
		}
		if err == nil && x.single() == "" {
			err = x.fail("scan.bounded.specific-offsets", "'scan.bounded.mode' = 'specific-offsets' needs exactly one topic")
		}
	}
	if err == nil {
		err = x.unused(m.mode, "scan.bounded.mode", map[string]string{"scan.bounded.timestamp-millis": "timestamp", "scan.bounded.specific-offsets": "specific-offsets"})
	}
	return m, err
}

func (x *table) need(modeKey, mode, key string) error {
	if x.v.Has(key) {
		return nil
	}
	return x.fail(modeKey, "'%s' = '%s' needs '%s'", modeKey, mode, key).WithHint("add '%s' = '...' to the WITH clause", key)
}

func (x *table) needGroup(modeKey string, c *client) error {
	if c.group != "" {
		return nil
	}
	return x.fail(modeKey, "'%s' = 'group-offsets' needs 'properties.group.id'", modeKey).
		WithHint("add 'properties.group.id' = '...' to the WITH clause")
}

// unused refuses an option that the chosen mode would ignore.
func (x *table) unused(mode, modeKey string, owner map[string]string) error {
	for _, key := range slices.Sorted(maps.Keys(owner)) {
		if x.v.Has(key) && owner[key] != mode {
			return x.fail(key, "option '%s' has no effect with '%s' = '%s'", key, modeKey, mode).
				WithHint("set '%s' = '%s', or remove the option", modeKey, owner[key])
		}
	}
	return nil
}

func (x *table) checkSource() error {
	c, err := newClient(x.t, "embedded:0", nil)
	if err != nil {
		return err
	}
	if _, err := x.startMode(c); err != nil {
		return err
	}
	if _, err := x.boundMode(c); err != nil {
		return err
	}
	dlq := x.v.Has("scan.dead-letter.topic")
	if (x.v.Enum("scan.on-error") == "dead-letter") != dlq {
		return x.fail("scan.on-error", "'scan.on-error' = 'dead-letter' and 'scan.dead-letter.topic' must be given together").
			WithHint("add the missing one, or remove the other")
	}
	if dlq && (x.v.String("scan.dead-letter.topic") == x.single() || x.pattern != nil && x.pattern.MatchString(x.v.String("scan.dead-letter.topic"))) {
		return x.fail("scan.dead-letter.topic", "the dead letter topic is a topic of the table itself").WithDetail("bad records would be read again forever")
	}
	return nil
}

// resolve turns the configured start and end into offsets for the given partitions. atStart is false for partitions
// found later: they are read from their first record.
func (s *source) resolve(ctx context.Context, parts []partition, atStart bool) (map[partition]position, error) {
	o, err := s.newOffsets(ctx, parts)
	if err != nil {
		return nil, err
	}
	out := map[partition]position{}
	for _, p := range parts {
		pos := position{epoch: -1, stop: noStop}
		s.mu.Lock()
		pos.topicID = s.ids[p.topic]
		s.mu.Unlock()
		if s.spec.Range != nil {
			pos.next, pos.stop, err = o.inRange(p)
		} else if pos.next, err = o.start(p, atStart); err == nil {
			pos.stop, err = o.stop(p)
		}
		if err != nil {
			return nil, err
		}
		out[p] = pos
	}
	return out, nil
}

// offsets answers where partitions start and end; lists are fetched once and only when needed.
type offsets struct {
	s                    *source
	ctx                  context.Context
	adm                  *kadm.Client
	topics               []string
	earliest, latest     kadm.ListedOffsets
	startTime, boundTime kadm.ListedOffsets
	group                kadm.OffsetResponses
}

func (s *source) newOffsets(ctx context.Context, parts []partition) (*offsets, error) {
	adm, err := s.admin(ctx)
	if err != nil {
		return nil, err
	}
	o := &offsets{s: s, ctx: ctx, adm: adm}
	for _, p := range parts {
		if !slices.Contains(o.topics, p.topic) {
			o.topics = append(o.topics, p.topic)
		}
	}
	return o, nil
}

type listFunc func(ctx context.Context, topics ...string) (kadm.ListedOffsets, error)

func (o *offsets) lookup(cache *kadm.ListedOffsets, list listFunc, p partition) (int64, error) {
	if *cache == nil {
		l, err := list(o.ctx, o.topics...)
		if err != nil {
			return 0, o.s.external(err, "kafka does not list offsets")
		}
		*cache = l
	}
	at, ok := cache.Lookup(p.topic, p.num)
	if !ok {
		return 0, o.s.external(nil, "%s does not exist", p)
	}
	if at.Err != nil {
		return 0, o.s.external(at.Err, "%s has no offsets", p)
	}
	return at.Offset, nil
}

// end is the end of what this source can see: the last stable offset unless it reads uncommitted records.
func (o *offsets) end(p partition) (int64, error) {
	if o.s.c.isolation == kgo.ReadUncommitted() {
		return o.lookup(&o.latest, o.adm.ListEndOffsets, p)
	}
	return o.lookup(&o.latest, o.adm.ListCommittedOffsets, p)
}

func (o *offsets) begin(p partition) (int64, error) {
	return o.lookup(&o.earliest, o.adm.ListStartOffsets, p)
}

func (o *offsets) after(cache *kadm.ListedOffsets, millis int64, p partition) (int64, error) {
	return o.lookup(cache, func(ctx context.Context, topics ...string) (kadm.ListedOffsets, error) {
		return o.adm.ListOffsetsAfterMilli(ctx, millis, topics...)
	}, p)
}

func (o *offsets) committed(p partition) (at int64, ok bool, err error) {
	if o.group == nil {
		g, err := o.adm.FetchOffsetsForTopics(o.ctx, o.s.c.group, o.topics...)
		if err != nil && !errors.Is(err, kerr.GroupIDNotFound) {
			return 0, false, o.s.external(err, "offsets of group %s cannot be read", o.s.c.group)
		}
		if o.group = g; g == nil {
			o.group = kadm.OffsetResponses{}
		}
	}
	r, found := o.group.Lookup(p.topic, p.num)
	if found && r.Err != nil && !errors.Is(r.Err, kerr.GroupIDNotFound) {
		return 0, false, o.s.external(r.Err, "offsets of group %s cannot be read", o.s.c.group)
	}
	return r.At, found && r.Err == nil && r.At >= 0, nil
}

func (o *offsets) start(p partition, atStart bool) (int64, error) {
	if !atStart {
		return o.begin(p)
	}
	switch m := o.s.start; m.mode {
	case "latest-offset":
		return o.end(p)
	case "timestamp":
		return o.after(&o.startTime, m.millis, p)
	case "group-offsets":
		at, ok, err := o.committed(p)
		if err != nil || ok {
			return at, err
		}
		return o.reset(p)
	case "specific-offsets":
		if at, ok := m.offsets[p.num]; ok {
			return at, nil
		}
		if o.s.c.group != "" {
			if at, ok, err := o.committed(p); err != nil || ok {
				return at, err
			}
		}
	}
	return o.begin(p)
}

// reset is where a partition without group offset starts: only where the user said so, as in Flink.
func (o *offsets) reset(p partition) (int64, error) {
	switch o.s.c.offsetReset {
	case "earliest":
		return o.begin(p)
	case "latest":
		return o.end(p)
	}
	how := "'scan.startup.mode' = 'group-offsets'"
	if o.s.start.defaulted {
		how = "the default with 'properties.group.id', 'scan.startup.mode' = 'group-offsets',"
	}
	return 0, diag.New(diag.Config, o.s.spec.Table.Options.Pos("properties.group.id"), "table %s: group '%s' has no offset for %s", o.s.spec.Table.Name, o.s.c.group, p).
		WithDetail("%s needs one", how).
		WithHint("set 'properties.auto.offset.reset' = 'earliest' (or 'latest'), or another 'scan.startup.mode'")
}

// stop is the first offset not to read. A partition that a bounded mode leaves out ends where it begins.
func (o *offsets) stop(p partition) (int64, error) {
	switch m := o.s.bound; m.mode {
	case "latest-offset":
		return o.end(p)
	case "timestamp":
		return o.after(&o.boundTime, m.millis, p)
	case "group-offsets":
		at, ok, err := o.committed(p)
		if err == nil && !ok {
			return 0, diag.New(diag.Config, o.s.spec.Table.Options.Pos("scan.bounded.mode"), "table %s: group '%s' has no offset for %s", o.s.spec.Table.Name, o.s.c.group, p).
				WithDetail("'scan.bounded.mode' = 'group-offsets' needs one for every partition")
		}
		return at, err
	case "specific-offsets":
		return m.offsets[p.num], nil
	}
	return noStop, nil
}
