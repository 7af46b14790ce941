package kafka

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/streamsql/streamsql/catalog"
	"github.com/streamsql/streamsql/connectors"
	"github.com/streamsql/streamsql/connectors/format"
	"github.com/streamsql/streamsql/sql/diag"
	"github.com/streamsql/streamsql/sql/types"
)

// table is a table's definition, checked: what both the source and the sink start from.
type table struct {
	t         *catalog.Table
	v         *connectors.Values
	fm        *format.Choice
	upsert    bool
	topics    []string
	pattern   *regexp.Regexp // nil when topics are listed
	key       []field        // columns of the record key in key order; nil without key format
	value     []field        // columns of the record value in declared order
	exceptKey bool
}

// field is a column that is part of the record key or value.
type field struct {
	col  int    // position in catalog.Table.Columns
	name string // in the record: the column's name, for keys without the prefix
	typ  types.Type
}

func schemaOf(fs []field) *types.Schema {
	s := &types.Schema{}
	for _, f := range fs {
		s.Columns = append(s.Columns, types.Column{Name: f.name, Type: f.typ})
	}
	return s
}

func (x *table) fail(key, msg string, args ...any) *diag.Error {
	return diag.New(diag.Config, x.t.Options.Pos(key), "table "+x.t.Name+": "+msg, args...)
}

// parseTable reads the options of t. It contacts nothing.
func parseTable(t *catalog.Table, upsert bool) (*table, error) {
	x := &table{t: t, upsert: upsert}
	slot, own := format.Plain|format.Keyed, kafkaOptions()
	if upsert {
		slot, own = format.ValueOnly, upsertOptions()
	}
	var err error
	if x.fm, err = format.Choose(t, slot); err != nil {
		return nil, err
	}
	for _, k := range t.Options.Keys() {
		if strings.HasPrefix(k, "scan.watermark.alignment.") {
			return nil, diag.New(diag.Unsupported, t.Options.Pos(k), "table %s: option '%s': watermark alignment is not supported", t.Name, k).
				WithHint("remove the option; sources of one job already share its backpressure")
		}
	}
	if x.v, err = connectors.Parse(t, append(own, x.fm.Options()...), []string{propertyPrefix}); err != nil {
		return nil, err
	}
	for _, step := range []func() error{x.readTopics, x.readFields, x.checkPrimaryKey, x.checkMetadata} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	return x, nil
}

func (x *table) readTopics() error {
	x.topics = x.v.List("topic")
	has := x.v.Has("topic-pattern")
	switch {
	case x.topics != nil && has:
		return x.fail("topic-pattern", "'topic' and 'topic-pattern' exclude each other").WithHint("keep one of them")
	case x.topics == nil && !has:
		return x.fail("connector", "missing required option 'topic' or 'topic-pattern'").WithHint("add 'topic' = '...' to the WITH clause")
	case has:
		p, err := regexp.Compile("^(?:" + x.v.String("topic-pattern") + ")$")
		if err != nil {
			return x.fail("topic-pattern", "option 'topic-pattern' is not a regular expression").Wrap(err).
				WithHint("the syntax is RE2: no look-around, no back references")
		}
		x.pattern = p
	}
	for _, t := range x.topics {
		if len(t) > 249 || !topicName.MatchString(t) {
			return x.fail("topic", "'%s' cannot be a topic name", t).WithDetail("a name has up to 249 letters, digits, '.', '_' and '-'")
		}
	}
	return nil
}

var topicName = regexp.MustCompile(`^[a-zA-Z0-9._-]+$`)

// single is the only topic rows go to, "" when the metadata column decides.
func (x *table) single() string {
	if len(x.topics) == 1 {
		return x.topics[0]
	}
	return ""
}

func (x *table) readFields() error {
	x.exceptKey = x.v.Enum("value.fields-include") == "EXCEPT_KEY"
	prefix := x.v.String("key.fields-prefix")
	names := x.t.PrimaryKey
	if !x.upsert {
		names = x.v.List("key.fields")
		if x.fm.Key == nil && names != nil {
			return x.fail("key.fields", "'key.fields' needs 'key.format'").WithHint("add 'key.format' = 'json' or 'raw'")
		}
		if x.fm.Key != nil && names == nil {
			return x.fail("key.format", "'key.format' needs 'key.fields'").WithHint("add 'key.fields' = 'column[;column]'")
		}
	}
	if prefix != "" && !x.exceptKey {
		return x.fail("key.fields-prefix", "'key.fields-prefix' needs 'value.fields-include' = 'EXCEPT_KEY'").
			WithDetail("with 'ALL' the value would have to hold columns of both names")
	}
	if x.exceptKey && x.fm.Key == nil {
		return x.fail("value.fields-include", "'value.fields-include' = 'EXCEPT_KEY' needs 'key.format' and 'key.fields'")
	}
	isKey := map[int]bool{}
	for _, n := range names {
		i := slices.IndexFunc(x.t.Columns, func(c catalog.Column) bool { return c.Name == n && c.Kind == catalog.Physical })
		if i < 0 {
			return x.fail("key.fields", "'%s' in 'key.fields' is not a physical column", n).
				WithHint("physical columns are %s", strings.Join(x.t.PhysicalSchema().Names(), ", "))
		}
		if !strings.HasPrefix(n, prefix) {
			return x.fail("key.fields-prefix", "key column '%s' does not start with 'key.fields-prefix' '%s'", n, prefix)
		}
		isKey[i] = true
		x.key = append(x.key, field{col: i, name: n[len(prefix):], typ: x.t.Columns[i].Type})
	}
	for i, c := range x.t.Columns {
		if c.Kind == catalog.Physical && !(x.exceptKey && isKey[i]) {
			x.value = append(x.value, field{col: i, name: c.Name, typ: c.Type})
		}
	}
	return nil
}

func (x *table) checkPrimaryKey() error {
	if x.upsert {
		if len(x.t.PrimaryKey) == 0 {
			return x.fail("connector", "connector 'upsert-kafka' needs a primary key").WithHint("declare PRIMARY KEY (...) NOT ENFORCED")
		}
		if x.fm.Value.Source != types.AppendOnly || x.fm.Value.Sink != types.AppendOnly {
			return x.fail("value.format", "format '%s' describes changes itself and cannot be used with 'upsert-kafka'", x.fm.Value.Name).
				WithHint("use connector 'kafka' with this format, or a plain format such as 'json'")
		}
		return nil
	}
	if len(x.t.PrimaryKey) > 0 && x.fm.Value.Source == types.AppendOnly && x.fm.Value.Sink == types.AppendOnly {
		return x.fail("connector", "connector 'kafka' with format '%s' cannot have a primary key", x.fm.Value.Name).
			WithDetail("its records only ever add rows, so a key could not be kept").
			WithHint("use 'connector' = 'upsert-kafka', a change format such as 'debezium-json', or drop the key")
	}
	return nil
}

func (x *table) checkMetadata() error {
	seen := map[string]string{}
	for _, c := range x.t.Columns {
		if c.Kind != catalog.Metadata {
			continue
		}
		if other, ok := seen[c.Key]; ok {
			return diag.New(diag.Semantic, diag.Pos{}, "table %s: columns '%s' and '%s' have the same metadata key '%s'", x.t.Name, other, c.Name, c.Key)
		}
		seen[c.Key] = c.Name
		m := x.metadata(c.Key)
		if m == nil {
			return diag.New(diag.Semantic, diag.Pos{}, "table %s: column '%s': unknown metadata key '%s'", x.t.Name, c.Name, c.Key).
				WithHint("known keys are %s", strings.Join(x.metadataKeys(), ", "))
		}
		if !c.Virtual && !m.Writable {
			return diag.New(diag.Semantic, diag.Pos{}, "table %s: metadata column '%s' cannot be written", x.t.Name, c.Name).
				WithHint("declare it METADATA FROM '%s' VIRTUAL", c.Key)
		}
		if !c.Virtual && c.Key == "topic" && x.single() != "" {
			// Read-only here; a table that is never written need not say so.
			continue
		}
	}
	return nil
}

// metadata is the description of a metadata key, nil when there is none.
func (x *table) metadata(key string) *connectors.MetadataColumn {
	for i := range metadataColumns {
		if metadataColumns[i].Key == key {
			return &metadataColumns[i]
		}
	}
	if k, ok := strings.CutPrefix(key, "value."); ok {
		for i := range x.fm.Value.Metadata {
			if x.fm.Value.Metadata[i].Key == k {
				m := x.fm.Value.Metadata[i]
				m.Writable = false
				return &m
			}
		}
	}
	return nil
}

func (x *table) metadataKeys() []string {
	var out []string
	for _, m := range metadataColumns {
		out = append(out, m.Key)
	}
	for _, m := range x.fm.Value.Metadata {
		out = append(out, "value."+m.Key)
	}
	return out
}

// specificOffsets parses 'partition:0,offset:42;partition:1,offset:300'.
func (x *table) specificOffsets(key string) (map[int32]int64, error) {
	text := x.v.String(key)
	bad := func() error {
		return x.fail(key, "option '%s': '%s' is not a list of offsets", key, text).
			WithHint("write 'partition:0,offset:42;partition:1,offset:300'")
	}
	out := map[int32]int64{}
	for _, part := range x.v.List(key) {
		p, o, ok := strings.Cut(part, ",")
		ps, ok1 := strings.CutPrefix(strings.TrimSpace(p), "partition:")
		os, ok2 := strings.CutPrefix(strings.TrimSpace(o), "offset:")
		pn, err1 := strconv.ParseInt(ps, 10, 32)
		on, err2 := strconv.ParseInt(os, 10, 64)
		if _, twice := out[int32(pn)]; !ok || !ok1 || !ok2 || err1 != nil || err2 != nil || pn < 0 || on < 0 || twice {
			return nil, bad()
		}
		out[int32(pn)] = on
	}
	if len(out) == 0 {
		return nil, bad()
	}
	return out, nil
}
