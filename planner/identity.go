package planner

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/exec/op"
	"github.com/streamsql/streamsql/sql/expr"
	"github.com/streamsql/streamsql/sql/types"
)

// identityVersion changes when the same plan gets another identity, so that a checkpoint of before is told apart from one of another statement.
const identityVersion = "1"

// identity is being written: what decides which state a plan has, as text that no rendering of EXPLAIN, name of a column or order of
// Go constants gets into. Columns stand by their places, functions, kinds and types by their names in SQL.
type identity struct {
	strings.Builder
	zone  string // of windows over TIMESTAMP_LTZ
	whole bool   // a shared scan stands with all columns that anybody reads
	known map[*phys]string
	seen  map[*phys]bool // by visit
	exprs *[]expr.Expr   // when not nil, takes what is put
}

// put writes one property of a node. Values of one kind each, so that what is written can be seen here and nowhere else.
func (w *identity) put(name string, values ...any) {
	w.WriteString(" " + name)
	for _, v := range values {
		w.WriteByte('=')
		w.value(v)
	}
}

func (w *identity) value(v any) {
	switch v := v.(type) {
	case string:
		w.WriteString(strconv.Quote(v))
	case bool:
		w.WriteString(strconv.FormatBool(v))
	case int:
		w.WriteString(strconv.Itoa(v))
	case int64:
		w.WriteString(strconv.FormatInt(v, 10))
	case []int:
		list(w, v)
	case [][]int:
		list(w, v)
	case []int64:
		list(w, v)
	case []float64:
		for _, f := range v {
			w.WriteString(strconv.FormatFloat(f, 'g', -1, 64) + ",")
		}
	case types.Type:
		w.WriteString(v.String())
	case expr.Expr:
		if w.exprs != nil {
			*w.exprs = append(*w.exprs, v)
			return
		}
		w.WriteString(expr.Identity(v))
	case nil: // no condition
		w.WriteString("-")
	case []expr.Expr:
		list(w, v)
	case [][]expr.Expr:
		list(w, v)
	case JoinKey:
		fmt.Fprintf(w, "%d:%d:%t", v.L, v.R, v.NullSafe)
	case []JoinKey:
		list(w, v)
	case SortKey:
		fmt.Fprintf(w, "%d:%t:%t", v.Col, v.Desc, v.NullsFirst)
	case []SortKey:
		list(w, v)
	case window:
		w.window(v)
	case expr.Agg:
		w.agg(v)
	case []expr.Agg:
		list(w, v)
	default:
		panic(fmt.Sprintf("planner: no identity for %T", v))
	}
}

func list[T any](w *identity, l []T) {
	w.WriteByte('[')
	for _, v := range l {
		w.value(v)
		w.WriteByte(',')
	}
	w.WriteByte(']')
}

func (w *identity) agg(a expr.Agg) {
	w.WriteString("{" + a.Kind.String())
	if a.User != nil {
		w.put("user", a.User.Name)
	}
	w.put("arg", a.Arg)
	if a.Arg >= 0 {
		w.put("type", a.ArgType)
	}
	w.put("gives", a.Type)
	if a.Distinct {
		w.put("distinct")
	}
	if a.Filter >= 0 {
		w.put("filter", a.Filter)
	}
	if a.Separator != "" {
		w.put("separator", a.Separator)
	}
	if a.KeepNulls {
		w.put("nulls")
	}
	if a.Fractions != nil {
		w.put("fractions", a.Fractions)
	}
	w.WriteByte('}')
}

func (w *identity) window(v window) {
	kind := v.Kind
	w.WriteByte('{')
	if kind == op.Attached {
		w.put("columns", v.Start, v.End)
		kind = v.Of
	} else {
		w.put("time", v.Time)
	}
	w.put("kind", windowNames[kind])
	w.put("of", v.Size, v.Slide, v.Offset)
	if len(v.Keys) > 0 {
		w.put("by", v.Keys)
	}
	w.put("proctime", v.Proctime)
	if v.TimeKind == types.TimestampLTZ && w.zone != "" { // state is named by the wall clock that windows are cut on
		w.put("zone", w.zone)
	}
	w.WriteByte('}')
}

var windowNames = map[op.WindowKind]string{op.Tumble: "tumble", op.Hop: "hop", op.Cumulate: "cumulate", op.Session: "session", op.Attached: "attached"}

// identities are what a checkpoint depends on, by operator: sources and sinks by name and connector, and operators with state by
// everything that decides what is in it, which is all below them. What stands above the last state may change between runs.
//
// former are those that were written while an operator above a shared scan was known by all columns that the scan reads, where they
// differ.
func identities(plan *Plan, zone *time.Location) (now, former map[checkpoint.OperatorID]string) {
	now, former = map[checkpoint.OperatorID]string{}, map[checkpoint.OperatorID]string{}
	whole := identityTexts(plan, zone, true)
	for id, text := range identityTexts(plan, zone, false) {
		now[id] = short(text)
		if whole[id] != text {
			former[id] = short(whole[id])
		}
	}
	return now, former
}

func identityTexts(plan *Plan, zone *time.Location, whole bool) map[checkpoint.OperatorID]string {
	out := map[checkpoint.OperatorID]string{}
	w := &identity{known: map[*phys]string{}, seen: map[*phys]bool{}, whole: whole}
	w.zone = zoneIdentity(zone)
	for _, r := range plan.roots {
		w.visit(r, out)
	}
	return out
}

func (w *identity) visit(p *phys, out map[checkpoint.OperatorID]string) {
	if w.seen[p] {
		return
	}
	w.seen[p] = true
	for _, in := range p.in {
		w.visit(in, out)
	}
	id := checkpoint.OperatorID(p.id)
	switch n := p.op.(type) {
	case *Scan:
		out[id] = "source " + n.Info.Table.Connector()
	case *Sink:
		out[id] = "sink " + n.Target.Connector.Name
	default:
		if _, seen := out[id]; !seen && stateful(p) {
			out[id] = w.of(p)
		}
	}
}

// zoneIdentity tells time zones apart by what they do, as the machine's own has no name: "" is UTC.
func zoneIdentity(zone *time.Location) string {
	if zone == nil {
		return ""
	}
	var offsets strings.Builder
	utc := true
	for month := range 12 * 10 {
		_, s := time.Date(2015, time.Month(1+month), 1, 0, 0, 0, 0, time.UTC).In(zone).Zone()
		utc = utc && s == 0
		offsets.WriteString(strconv.Itoa(s) + " ")
	}
	if utc {
		return ""
	}
	return short(offsets.String())
}

// short is enough of a hash to tell the operators of a job apart.
func short(s string) string {
	h := sha256.Sum256([]byte(s))
	return identityVersion + ":" + hex.EncodeToString(h[:12])
}

// longIdentity is the length from which a subtree stands as its hash, so that views read many times do not multiply it.
const longIdentity = 4000

// of is the text of the subtree of p.
func (w *identity) of(p *phys) string {
	if s, ok := w.known[p]; ok {
		return s
	}
	n := &identity{zone: w.zone, known: w.known, whole: w.whole}
	if c, ok := p.op.(*Calc); ok && c.Own != nil && !w.whole {
		n.reader(c)
	} else {
		n.node(p.op.(operator), p.fields)
		for _, in := range p.in {
			n.input(n.of(counted(in)))
		}
	}
	w.known[p] = n.String()
	return w.known[p]
}

func (w *identity) node(o operator, fields []Field) {
	w.WriteString(o.slug())
	o.identity(w)
	w.WriteString(" (")
	for _, f := range fields {
		w.value(f.Type)
		w.WriteByte(',')
	}
	w.WriteByte(')')
}

func (w *identity) input(text string) {
	if len(text) > longIdentity {
		text = short(text)
	}
	w.WriteString(" <- {" + text + "}")
}

// reader is c, which is over a shared scan, as if nobody else read the table.
func (w *identity) reader(c *Calc) {
	shared := c.In.(*Scan).stored()
	own := c.Own.stored()
	at := make([]int, len(shared))
	for i, e := range shared {
		at[i] = indexExpr(own, e)
	}
	alone := &Calc{In: c.Own, Exprs: make([]expr.Expr, len(c.Exprs)), Names: c.Names}
	for i, e := range c.Exprs {
		alone.Exprs[i] = expr.Remap(e, at)
	}
	if c.Cond != nil {
		alone.Cond = expr.Remap(c.Cond, at)
	}
	scan := &identity{zone: w.zone, known: w.known}
	scan.node(c.Own, c.Own.Fields())
	if alone.Cond == nil && passesThrough(alone, false) {
		w.WriteString(scan.String())
		return
	}
	w.node(alone, alone.Fields())
	w.input(scan.String())
}

// counted is the next node from p down that makes a difference.
func counted(p *phys) *phys {
	for {
		switch n := p.op.(type) {
		case *localAggregate: // two phases have the state of one
		case *normalize:
			if !n.removed {
				return p
			}
		case *Calc: // columns may get other names
			if n.Cond != nil || !passesThrough(n, false) {
				return p
			}
		default:
			return p
		}
		p = p.in[0]
	}
}
