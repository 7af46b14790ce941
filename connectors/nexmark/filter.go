package nexmark

import (
	"slices"

	"github.com/streamsql/streamsql/catalog"
	"github.com/streamsql/streamsql/sql/expr"
	"github.com/streamsql/streamsql/sql/types"
)

// Filters are pushed down as far as they decide which kinds of events can be rows: the others are then not made at all.

// truth is which values a condition can have, and whether it can fail.
type truth uint8

const (
	mayTrue truth = 1 << iota
	mayFalse
	mayNull
	mayFail
)

// pushFilter implements connectors.Connector.PushFilter: what is left of the filter are the kinds of events.
func pushFilter(t *catalog.Table, filter, watermark expr.Expr) expr.Expr {
	p, err := parse(t)
	if err != nil || p.event != allEvents {
		return nil
	}
	col := slices.IndexFunc(p.columns, func(c column) bool { return c.field == eventType })
	if col < 0 || watermark != nil && !p.oneWatermark(watermark) {
		return nil
	}
	is := &expr.Column{Index: col, Name: t.Columns[col].Name, T: t.Columns[col].Type}
	var out expr.Expr
	for k, keep := range p.kinds(filter) {
		if !keep {
			continue
		}
		one, err := expr.NewBinary("=", is, &expr.Literal{T: types.IntType.NotNull(), Value: types.IntDatum(int64(k))})
		if err == nil && out != nil {
			one, err = expr.NewBinary("OR", out, one)
		}
		if err != nil {
			return nil
		}
		out = one
	}
	return out
}

// kinds are the kinds of events for which filter, over the table's columns, can be TRUE or fail; nil when it says nothing: all, or
// none, which the engine's filter may see to.
func (p *plan) kinds(filter expr.Expr) []bool {
	if filter == nil {
		return nil
	}
	keep := make([]bool, len(specs))
	for k := range keep {
		keep[k] = p.values(p.of(filter, kind(k)))&(mayTrue|mayFail) != 0
	}
	if !slices.Contains(keep, false) || !slices.Contains(keep, true) {
		return nil
	}
	return keep
}

// of is e for events of kind k: their kind is known, and the fields of other kinds are NULL.
func (p *plan) of(e expr.Expr, k kind) expr.Expr {
	return expr.Replace(e, func(e expr.Expr) (expr.Expr, bool) {
		c, _ := e.(*expr.Column)
		if c == nil {
			if c, _ = expr.FieldPath(e); c == nil {
				return nil, false
			}
		}
		switch col := p.columns[c.Index]; {
		case col.field == eventType:
			return &expr.Literal{T: e.Type(), Value: types.IntDatum(int64(k))}, true
		case col.kind != noKind && col.kind != k:
			return &expr.Literal{T: e.Type().WithNull(true), Value: types.NullDatum}, true
		}
		return e, true
	})
}

// values are those that the condition e, of one kind of events, can have.
func (p *plan) values(e expr.Expr) truth {
	if b, ok := e.(*expr.Binary); ok && (b.Op == "AND" || b.Op == "OR") {
		l := p.values(b.L)
		decides := mayFalse
		if b.Op == "OR" {
			decides = mayTrue
		}
		if l == decides {
			return l
		}
		r := p.values(b.R)
		fail := (l | r) & mayFail
		if r&^mayFail == decides {
			return decides | fail
		}
		both := l | r
		if l&r&(mayTrue|mayFalse)&^decides == 0 { // that takes both
			both &= mayNull | mayFail | decides
		}
		return both
	}
	if !simple(e) {
		return mayTrue | mayFalse | mayNull | mayFail
	}
	x, err := expr.Fold(e, expr.Session{})
	l, ok := x.(*expr.Literal)
	switch {
	case err != nil || !ok:
		return mayTrue | mayFalse | mayNull
	case l.Value.IsNull:
		return mayNull
	case l.Value.Bool:
		return mayTrue
	}
	return mayFalse
}

// simple reports that e cannot fail and needs nothing of the session.
func simple(e expr.Expr) bool {
	ok := true
	expr.Walk(e, func(x expr.Expr) bool {
		switch x := x.(type) {
		case *expr.Binary:
			ok = ok && slices.Contains([]string{"=", "<>", "<", "<=", ">", ">=", "AND", "OR"}, x.Op)
		case *expr.Unary:
			ok = ok && x.Op == "NOT"
		case *expr.Column, *expr.FieldRef, *expr.Literal, *expr.Is, *expr.In:
		default:
			ok = false
		}
		return ok
	})
	return ok
}

// oneWatermark reports that watermark, over the table's columns, is the same of all kinds of events and rises with their time: then the
// last event's is the greatest.
func (p *plan) oneWatermark(watermark expr.Expr) bool {
	var first expr.Expr
	for k := range specs {
		e, ok := p.timeOf(p.of(watermark, kind(k)))
		if !ok || expr.RisesWith(e) != 0 || first != nil && !expr.Equal(first, e) {
			return false
		}
		first = e
	}
	return true
}

// timeOf is e, of one kind of events, with the cases that are not theirs left out, over their time as the only column.
func (p *plan) timeOf(e expr.Expr) (out expr.Expr, ok bool) {
	ok = true
	out = expr.Replace(e, func(e expr.Expr) (expr.Expr, bool) {
		if c, isCase := e.(*expr.Case); isCase {
			x, known := p.timeOf(p.taken(c))
			ok = ok && known
			return x, true
		}
		c, path := expr.FieldPath(e)
		if c == nil {
			_, column := e.(*expr.Column)
			ok = ok && !column
			return e, column
		}
		col := p.columns[c.Index]
		if len(path) != 1 || len(col.row) <= path[0] || col.row[path[0]] != eventTime {
			ok = false
		}
		return &expr.Column{Name: "time", T: e.Type()}, true
	})
	return out, ok
}

// taken is the result of a CASE for one kind of events; what is not known stays a CASE of columns that timeOf refuses.
func (p *plan) taken(c *expr.Case) expr.Expr {
	for i, w := range c.When {
		switch p.values(w) {
		case mayTrue:
			return c.Then[i]
		case mayFalse, mayNull:
		default:
			return &expr.Column{Index: -1, Name: "unknown", T: c.T}
		}
	}
	return c.Else
}
