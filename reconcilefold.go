package streamsql

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/zeebo/xxh3"

	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/connectors"
	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/diag"
	"github.com/streamsql/streamsql/sql/expr"
	"github.com/streamsql/streamsql/sql/types"
)

// buckets is how many groups there are without a time column.
const buckets = 64

// layout is how rows of a sink are compared: by key or as a multiset, in which groups.
type layout struct {
	schema  *types.Schema
	session expr.Session
	key     []int // nil = as a multiset
	by      int   // column that makes the groups; -1 = a hash of the key or row
	hours   bool  // groups are hours of the column
	sums    []int // columns that are added up, for people
}

// newLayout chooses the groups: by the column asked for, else by the window's time, else by hours of the first time column.
func newLayout(schema *types.Schema, key []string, by string, s expr.Session) (*layout, error) {
	l := &layout{schema: schema, session: s, by: -1}
	for _, k := range key {
		l.key = append(l.key, slices.Index(schema.Names(), k))
	}
	names := schema.Names()
	if by != "" {
		if l.by = slices.Index(names, by); l.by < 0 {
			return nil, diag.New(diag.Config, diag.Pos{}, "there is no column %q to group by", by).WithDetail("the columns are %s", strings.Join(names, ", "))
		}
	}
	for _, n := range []string{"window_start", "window_end"} {
		if i := slices.Index(names, n); l.by < 0 && i >= 0 {
			l.by = i
		}
	}
	for i, c := range schema.Columns {
		switch c.Type.Kind {
		case types.Date, types.Timestamp, types.TimestampLTZ:
			if l.by < 0 {
				l.by, l.hours = i, c.Type.Kind != types.Date
			}
		case types.TinyInt, types.SmallInt, types.Int, types.BigInt, types.Decimal, types.Float, types.Double:
			l.sums = append(l.sums, i)
		}
	}
	return l, nil
}

// String says what the groups are.
func (l *layout) String() string {
	switch {
	case l.by < 0:
		return "hash"
	case l.hours:
		return l.schema.Columns[l.by].Name + " (hours)"
	}
	return l.schema.Columns[l.by].Name
}

func (l *layout) text(d types.Datum, i int) string {
	if d.IsNull {
		return "NULL"
	}
	return string(types.AppendDisplay(nil, d, l.schema.Columns[i].Type, l.session.Zone))
}

// rowText is a row for people and for comparing: values that differ have texts that differ.
func (l *layout) rowText(row []types.Datum, cols []int) string {
	var sb strings.Builder
	for i, d := range row {
		if cols != nil && !slices.Contains(cols, i) {
			continue
		}
		if sb.Len() > 0 {
			sb.WriteString(", ")
		}
		sb.WriteString(l.schema.Columns[i].Name)
		sb.WriteByte('=')
		if t := l.text(d, i); !d.IsNull && l.schema.Columns[i].Type.IsString() {
			sb.WriteString(strconv.Quote(t))
		} else {
			sb.WriteString(t)
		}
	}
	return sb.String()
}

func (l *layout) group(row []types.Datum, whole string) string {
	if l.by < 0 {
		if l.key != nil {
			whole = l.rowText(row, l.key)
		}
		return fmt.Sprintf("bucket %02d", xxh3.HashString(whole)%buckets)
	}
	t := l.text(row[l.by], l.by)
	if l.hours && len(t) >= 13 {
		return t[:13] + ":00"
	}
	return t
}

// figures are a group's rows added up. Groups with equal count and hash have equal rows.
type figures struct {
	rows   int64
	hash   [2]uint64
	whole  []types.Int128 // per column of layout.sums: integers and decimals
	floats []float64      // and the others
}

// oneRow is a row as far as it is kept.
type oneRow struct {
	group, text string
	whole       []types.Int128
	floats      []float64
}

// tally adds up the rows of one side. It takes changes; safe for concurrent use.
type tally struct {
	l *layout

	mu      sync.Mutex
	changes int64
	groups  map[string]*figures
	keyed   map[string]*oneRow          // by key
	want    map[string]bool             // groups whose rows are kept
	kept    map[string]map[string]int64 // group, row: how often
}

func newTally(l *layout, want map[string]bool) *tally {
	return &tally{l: l, groups: map[string]*figures{}, keyed: map[string]*oneRow{}, want: want, kept: map[string]map[string]int64{}}
}

// take adds a change.
func (t *tally) take(kind types.RowKind, row []types.Datum) {
	r := &oneRow{text: t.l.rowText(row, nil), whole: make([]types.Int128, len(t.l.sums)), floats: make([]float64, len(t.l.sums))}
	r.group = t.l.group(row, r.text)
	for i, c := range t.l.sums {
		switch d := row[c]; {
		case d.IsNull:
		case t.l.schema.Columns[c].Type.Phys() == types.PhysF64:
			r.floats[i] = d.F64
		case t.l.schema.Columns[c].Type.Phys() == types.PhysI128:
			r.whole[i] = types.Int128{Hi: d.Hi, Lo: uint64(d.I64)}
		default:
			r.whole[i] = types.Int128{Hi: d.I64 >> 63, Lo: uint64(d.I64)}
		}
	}
	gone := kind == types.UpdateBefore || kind == types.Delete
	t.mu.Lock()
	defer t.mu.Unlock()
	t.changes++
	if t.l.key == nil {
		if gone {
			t.add(r, -1)
		} else {
			t.add(r, 1)
		}
		return
	}
	key := t.l.rowText(row, t.l.key)
	if old := t.keyed[key]; old != nil {
		t.add(old, -1)
		delete(t.keyed, key)
	}
	if !gone {
		t.add(r, 1)
		t.keyed[key] = r
	}
}

func (t *tally) add(r *oneRow, n int64) {
	g := t.groups[r.group]
	if g == nil {
		g = &figures{whole: make([]types.Int128, len(t.l.sums)), floats: make([]float64, len(t.l.sums))}
		t.groups[r.group] = g
	}
	h := xxh3.HashString128(r.text)
	g.rows += n
	g.hash[0] += h.Hi * uint64(n)
	g.hash[1] += h.Lo * uint64(n)
	for i := range r.whole {
		if n > 0 {
			g.whole[i], g.floats[i] = g.whole[i].Add(r.whole[i]), g.floats[i]+r.floats[i]
		} else {
			g.whole[i], g.floats[i] = g.whole[i].Sub(r.whole[i]), g.floats[i]-r.floats[i]
		}
	}
	if !t.want[r.group] {
		return
	}
	k := t.kept[r.group]
	if k == nil {
		k = map[string]int64{}
		t.kept[r.group] = k
	}
	if k[r.text] += n; k[r.text] == 0 {
		delete(k, r.text)
	}
}

func (t *tally) takeBatch(b *batch.Batch) {
	row := make([]types.Datum, len(b.Cols))
	for i := range b.Len() {
		r := b.Row(i)
		for k, v := range b.Cols {
			row[k] = v.Datum(r)
		}
		t.take(b.Kind(r), row)
	}
}

// rows is how many rows there are now.
func (t *tally) rows() (n int64) {
	for _, g := range t.groups {
		n += g.rows
	}
	return n
}

// show is a group for people.
func (l *layout) show(g *figures) string {
	if g == nil {
		return "no row"
	}
	out := fmt.Sprintf("%d rows", g.rows)
	for i, c := range l.sums {
		col := l.schema.Columns[c]
		if col.Type.Phys() == types.PhysF64 {
			out += fmt.Sprintf(", sum(%s) = %g", col.Name, g.floats[i])
			continue
		}
		scale := 0
		if col.Type.Kind == types.Decimal {
			scale = col.Type.Scale
		}
		out += fmt.Sprintf(", sum(%s) = %s", col.Name, types.AppendDecimal(nil, g.whole[i], scale))
	}
	return out
}

// differing are the groups in which the sides differ, sorted.
func differing(a, b *tally) (out []string) {
	var none figures
	names := map[string]bool{}
	for _, t := range []*tally{a, b} {
		for g := range t.groups {
			names[g] = true
		}
	}
	for g := range names {
		x, y := a.groups[g], b.groups[g]
		if x == nil {
			x = &none
		}
		if y == nil {
			y = &none
		}
		if x.rows != y.rows || x.hash != y.hash {
			out = append(out, g)
		}
	}
	slices.Sort(out)
	return out
}

// tallySink is a sink that adds rows up.
type tallySink struct{ t *tally }

// connectorOf is the connector of a sink that adds rows up into t; nil drops them.
func connectorOf(t *tally) *connectors.Connector {
	return &connectors.Connector{Name: "reconcile", Doc: "adds rows up",
		NewSink: func(context.Context, connectors.SinkSpec) (connectors.Sink, error) { return tallySink{t}, nil }}
}

// Preflight implements connectors.Sink.
func (tallySink) Preflight(context.Context) error { return nil }

// Committer implements connectors.Sink.
func (tallySink) Committer(context.Context) (checkpoint.Committer, error) { return nil, nil }

// Open implements connectors.Sink.
func (s tallySink) Open(context.Context, int) (connectors.Writer, error) { return s, nil }

// Close implements connectors.Sink and Writer.
func (tallySink) Close() error { return nil }

// Write implements connectors.Writer.
func (s tallySink) Write(_ context.Context, b *batch.Batch) error {
	if s.t != nil {
		s.t.takeBatch(b)
	}
	return nil
}

// PreCommit implements connectors.Writer.
func (tallySink) PreCommit(context.Context, checkpoint.ID) ([]checkpoint.Committable, error) {
	return nil, nil
}

// Committed implements connectors.Writer.
func (tallySink) Committed(context.Context, checkpoint.ID) error { return nil }
