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
