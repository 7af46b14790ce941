package planner

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/streamsql/streamsql/sql/expr"
	"github.com/streamsql/streamsql/sql/types"
)

// interval is what makes a join an interval join: right time + Lower ≤ left time ≤ right time + Upper, in ms, over a time
// attribute of each side (columns of that side).
type interval struct {
	L, R         int
	Lower, Upper int64
	Proctime     bool
}

// text is the condition as SQL.
func (v *interval) text(l, r []Field) string {
	bound := func(ms int64) string {
		switch {
		case ms < 0:
			return r[v.R].Name + " - " + millis(-ms)
		case ms > 0:
			return r[v.R].Name + " + " + millis(ms)
		}
		return r[v.R].Name
	}
	return fmt.Sprintf("%s BETWEEN %s AND %s", l[v.L].Name, bound(v.Lower), bound(v.Upper))
}

// timeBound is one comparison of a left with a right time attribute.
type timeBound struct {
	l, r         int
	lower, upper int64 // math.MinInt64 and math.MaxInt64: open
	proctime     bool
	mixed        bool // TIMESTAMP with TIMESTAMP_LTZ
}

// intervalJoin recognises a join whose condition bounds the distance of the two sides' times from both directions.
func intervalJoin(n *Join) timed {
	if n.Kind.HalfJoin() {
		return nil
	}
	left := len(n.L.Fields())
	fields := slices.Concat(n.L.Fields(), n.R.Fields())
	var v *interval
	var rest []expr.Expr
	mixed := false
	var conjuncts []expr.Expr
	if n.Cond != nil {
		conjuncts = expr.Conjuncts(n.Cond)
	}
	for _, c := range conjuncts {
		b, ok := timeComparison(c, fields, left)
		if !ok || v != nil && (v.L != b.l || v.R != b.r) {
			rest = append(rest, c)
			continue
		}
		if v == nil {
			v = &interval{L: b.l, R: b.r, Lower: math.MinInt64, Upper: math.MaxInt64, Proctime: b.proctime}
		}
		v.Lower, v.Upper, mixed = max(v.Lower, b.lower), min(v.Upper, b.upper), mixed || b.mixed
	}
	keys := n.Keys
	if v == nil {
		v, keys = equalTimes(n)
	}
	if v == nil || v.Lower == math.MinInt64 || v.Upper == math.MaxInt64 {
		return nil
	}
	out := &IntervalJoin{L: n.L, R: n.R, Kind: n.Kind, Keys: keys, Interval: *v, Mixed: mixed, Pos: n.Pos}
	if rest != nil {
		out.Cond = expr.And(rest...)
	}
	return out
}

// equalTimes finds an equality of times among the keys of n, and returns the other keys. What a key computes stands in a
// projection below the join, behind its columns.
func equalTimes(n *Join) (*interval, []JoinKey) {
	at := func(side Node, c int) (col int, ms int64, ok bool) {
		f := side.Fields()
		p, computed := side.(*Project)
		if !computed || f[c].Time != NoTime {
			return c, 0, f[c].Time != NoTime
		}
		in := p.In.Fields()
		x, ms, ok := shiftedTime(p.Exprs[c], in)
		if !ok {
			return 0, 0, false
		}
		col = slices.IndexFunc(p.Exprs, func(e expr.Expr) bool {
			i, isCol := e.(*expr.Column)
			return isCol && i.Index == x
		})
		return col, ms, col >= 0
	}
	lf, rf := n.L.Fields(), n.R.Fields()
	for i, k := range n.Keys {
		l, lms, ok := at(n.L, k.L)
		if !ok || k.NullSafe {
			continue
		}
		r, rms, ok := at(n.R, k.R)
		if ok && lf[l].Time == rf[r].Time && lf[l].Type.Kind == rf[r].Type.Kind {
			v := &interval{L: l, R: r, Lower: rms - lms, Upper: rms - lms, Proctime: lf[l].Time == Proctime}
			return v, slices.Delete(slices.Clone(n.Keys), i, i+1)
		}
	}
	return nil, n.Keys
}

// timeComparison recognises left time ± constant op right time ± constant.
func timeComparison(c expr.Expr, fields []Field, left int) (timeBound, bool) {
	b, ok := c.(*expr.Binary)
	if !ok {
		return timeBound{}, false
	}
	op := b.Op
	lc, lo, ok := shiftedTime(b.L, fields)
	if !ok {
		return timeBound{}, false
	}
	rc, ro, ok := shiftedTime(b.R, fields)
	if !ok || (lc < left) == (rc < left) {
		return timeBound{}, false
	}
	if lc >= left {
		lc, lo, rc, ro = rc, ro, lc, lo
		op = map[string]string{"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "="}[op]
	}
	if fields[lc].Time != fields[rc].Time {
		return timeBound{}, false
	}
	t := timeBound{l: lc, r: rc - left, lower: math.MinInt64, upper: math.MaxInt64, proctime: fields[lc].Time == Proctime,
		mixed: fields[lc].Type.Kind != fields[rc].Type.Kind}
	d := ro - lo
	switch op { // left op right + d
	case ">=":
		t.lower = d
	case ">":
		t.lower = d + 1
	case "<=":
		t.upper = d
	case "<":
		t.upper = d - 1
	case "=":
		t.lower, t.upper = d, d
	default:
		return timeBound{}, false
	}
	return t, true
}

// maxShift bounds constants in time conditions, so that sums of two stay in range: about 146 million years.
const maxShift = math.MaxInt64 / 4

// shiftedTime recognises a time attribute plus or minus constant day-time intervals: its column and the sum in ms.
func shiftedTime(e expr.Expr, fields []Field) (col int, ms int64, ok bool) {
	switch e := e.(type) {
	case *expr.Column:
		return e.Index, 0, fields[e.Index].Time != NoTime
	case *expr.Cast:
		// Written by the user it makes a plain timestamp. Between TIMESTAMP and TIMESTAMP_LTZ a comparison adds it.
		if t := e.Type(); e.Mode != expr.CastImplicit || !t.IsTimestamp() || t.Kind == e.X.Type().Kind {
			return 0, 0, false
		}
		return shiftedTime(e.X, fields)
	case *expr.Binary:
		if e.Op != "+" && e.Op != "-" {
			return 0, 0, false
		}
		x, by := e.L, e.R
		if _, isConst := intervalMillis(x); isConst && e.Op == "+" {
			x, by = by, x
		}
		d, isConst := intervalMillis(by)
		if !isConst {
			return 0, 0, false
		}
		if e.Op == "-" {
			d = -d
		}
		col, ms, ok = shiftedTime(x, fields)
		ms += d
		return col, ms, ok && ms < maxShift && ms > -maxShift
	}
	return 0, 0, false
}

// intervalMillis is the value of a constant day-time interval.
func intervalMillis(e expr.Expr) (int64, bool) {
	if e.Type().Kind != types.IntervalDayTime {
		return 0, false
	}
	switch e := e.(type) {
	case *expr.Literal:
		return e.Value.I64, !e.Value.IsNull && e.Value.I64 < maxShift && e.Value.I64 > -maxShift
	case *expr.Cast:
		return intervalMillis(e.X)
	case *expr.Unary:
		v, ok := intervalMillis(e.X)
		return -v, ok && strings.TrimSpace(e.Op) == "-"
	}
	return 0, false
}
