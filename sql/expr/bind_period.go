package expr

import (
	"github.com/streamsql/streamsql/sql/diag"
	"github.com/streamsql/streamsql/sql/types"
)

// newOverlaps is (start, end) OVERLAPS (start, end). An end that is an interval is added to its start, a period given
// backwards is turned round, and periods that touch overlap:
//
//	least(end) of each side >= greatest(start) of the other
func newOverlaps(l, r Expr) (Expr, error) {
	s0, e0, err := period(l)
	if err != nil {
		return nil, err
	}
	s1, e1, err := period(r)
	if err != nil {
		return nil, err
	}
	first, err := newComparison(">=", e0, s1)
	if err != nil {
		return nil, err
	}
	second, err := newComparison(">=", e1, s0)
	if err != nil {
		return nil, err
	}
	return newLogic("AND", first, second)
}

// period is the earlier and the later end of a row of two times, or of a time and an interval.
func period(x Expr) (from, to Expr, err error) {
	c, ok := x.(*Construct)
	if !ok || c.T.Kind != types.Row || len(c.Elems) != 2 || !isTemporal(c.Elems[0].Type()) {
		return nil, nil, diag.New(diag.Semantic, diag.Pos{}, "OVERLAPS compares two periods, %s is none", x).
			WithHint("write (start, end) with DATE, TIME or TIMESTAMP values; the end may be an INTERVAL")
	}
	from, to = c.Elems[0], c.Elems[1]
	if to.Type().IsInterval() {
		if to, err = newArith("+", from, to); err != nil {
			return nil, nil, err
		}
	}
	ordered, err := newComparison("<=", from, to)
	if err != nil {
		return nil, nil, err
	}
	if from.Type().IsTimestamp() && to.Type().IsTimestamp() {
		es, _, err := unify([]Expr{from, to})
		if err != nil {
			return nil, nil, err
		}
		from, to = es[0], es[1]
	}
	lo, err := NewCase(nil, []Expr{ordered}, []Expr{from}, to)
	if err != nil {
		return nil, nil, err
	}
	hi, err := NewCase(nil, []Expr{ordered}, []Expr{to}, from)
	return lo, hi, err
}

// timeDiffFunc is (a - b) unit, which has no call syntax.
var timeDiffFunc = &Func{Name: "MINUS", Category: "temporal", Usage: "(time - time) unit [TO unit]"}

// NewTimeDiff is (l - r) unit: the interval of type t from r to l, in complete months or in milliseconds.
func NewTimeDiff(l, r Expr, t types.Type) (Expr, error) {
	b, err := fn(timeDiffFunc.Usage, spec{params: "xx", ret: t, key: func(*site) string { return t.Unit }, check: func(b *site) error {
		x, y := b.args[0].Type(), b.args[1].Type()
		if !isTemporal(x) || !isTemporal(y) || (x.Kind == types.TimestampLTZ) != (y.Kind == types.TimestampLTZ) {
			return diag.New(diag.Semantic, diag.Pos{}, "%s and %s have no interval between them", x.WithNull(true), y.WithNull(true)).
				WithHint("it takes two DATE, TIME or TIMESTAMP values, or two of TIMESTAMP_LTZ")
		}
		return nil
	}, eval: func(b *site) func(Session) Eval {
		x, y := localTime(b.args[0].Type(), Session{}, 0), localTime(b.args[1].Type(), Session{}, 1)
		e := perRow(vecI64, func(row row) (int64, *diag.Error) {
			s0, n0 := x(row)
			s1, n1 := y(row)
			a, b := s0*1000+n0/1e6, s1*1000+n1/1e6
			if t.Kind == types.IntervalYearMonth {
				return int64(int32(monthsBetween(b, a))), nil
			}
			return a - b, nil
		})
		return func(Session) Eval { return e }
	}})(&CallSite{Name: "-", Args: []Expr{l, r}})
	if err != nil {
		return nil, err
	}
	return &Call{Func: timeDiffFunc, Bound: b}, nil
}
