package equivalence

import (
	"fmt"
	"strings"

	"github.com/streamsql/streamsql"
)

func init() {
	register("lateral", 3, func(g *gen, depth int) query {
		in := g.query(depth - 1)
		l := lateral{in: in, left: g.r.IntN(2) == 0, how: g.r.IntN(len(lateralHows)), arg: randomExpr(g.r, in.width(), 1), when: randomCondition(g.r, in.width(), 1)}
		return g.narrow(l)
	})
}

// countdown is the table function COUNTDOWN(n): rows (n - 1, 'x'), (n - 2, 'x'), … of the remainder of n by 4.
var countdown = streamsql.TableFunc1("COUNTDOWN", func(n int64, emit func(countdownRow)) error {
	for n %= 4; n > 0; n-- {
		emit(countdownRow{n - 1, "x"})
	}
	return nil
})

type countdownRow struct {
	N int64  `sql:"n"`
	X string `sql:"x"`
}

// lateral joins each row with rows that are made of it; with left a row without any stays.
type lateral struct {
	in   query
	left bool
	how  int
	arg  scalar
	when scalar
}

// lateralHows are the SQL of one column {c} made of {arg} and a condition {when}, and its values.
var lateralHows = []struct {
	sql  string
	rows func(arg value, when bool) []value
}{
	{"LATERAL TABLE(COUNTDOWN({arg})) AS x({c}, w)", func(arg value, _ bool) (out []value) {
		for n := arg.v % 4; n > 0 && !arg.null; n-- {
			out = append(out, value{v: n - 1})
		}
		return out
	}},
	{"UNNEST(CASE WHEN {when} THEN ARRAY[{arg}, 7] END) AS x({c})", func(arg value, when bool) []value {
		if !when {
			return nil
		}
		return []value{arg, {v: 7}}
	}},
	{"UNNEST(MAP['a', {arg}, 'b', 9]) AS x(k, {c})", func(arg value, _ bool) []value { return []value{arg, {v: 9}} }},
	{"UNNEST(ARRAY[ROW({arg}, 'y'), ROW(3, 'z')]) AS x({c}, w)", func(arg value, _ bool) []value { return []value{arg, {v: 3}} }},
}

func (l lateral) width() int { return l.in.width() + 1 }

func (l lateral) sql() string {
	n := l.in.width()
	join, on := "CROSS", ""
	if l.left {
		join, on = "LEFT", " ON TRUE"
	}
	right := strings.NewReplacer("{arg}", ofSides(l.arg.sql, n), "{when}", ofSides(l.when.sql, n), "{c}", fmt.Sprintf("c%d", n)).Replace(lateralHows[l.how].sql)
	return fmt.Sprintf("SELECT l.*, x.c%d FROM (%s) AS l %s JOIN %s%s", n, l.in.sql(), join, right, on)
}

func (l lateral) eval(t tables) (out []row) {
	for _, r := range l.in.eval(t) {
		made := lateralHows[l.how].rows(l.arg.eval(r), isTrue(l.when.eval(r)))
		if len(made) == 0 && l.left {
			made = []value{null}
		}
		for _, v := range made {
			out = append(out, append(append(row{}, r...), v))
		}
	}
	return checkRows(out)
}
