package equivalence

import (
	"fmt"
	"slices"
	"strings"
)

func init() {
	registerLeaf("window", 5, func(g *gen, _ int) query {
		in, sessions := g.timed("e", false), true
		if g.r.IntN(4) == 0 { // a session stays as long as it was when a row at its end is taken back
			in, sessions = g.filtered("w"), false
		}
		w := windowed{tvf: g.tvf(in, sessions), keys: g.r.IntN(3), calls: randomCalls(g.r, 3)}
		if w.tvf.kind == "SESSION" {
			w.keys = w.tvf.keys
		}
		if g.r.IntN(3) == 0 {
			c := randomCondition(g.r, 3, 1)
			w.where = &c
		}
		w.rollup = w.keys > 0 && w.tvf.kind != "SESSION" && g.r.IntN(4) == 0
		w.legacy = !w.rollup && w.tvf.kind != "CUMULATE" && g.r.IntN(4) == 0
		return w
	})
	registerLeaf("window twice", 2, func(g *gen, _ int) query { // one aggregation with two readers
		w := windowed{tvf: g.tvf(g.timed("e", false), true), calls: randomCalls(g.r, 3)}
		if w.keys = g.r.IntN(2); w.tvf.kind == "SESSION" {
			w.keys = w.tvf.keys
		}
		again := query(w)
		switch g.r.IntN(4) {
		case 0:
			again = filter{w, randomCondition(g.r, w.width(), 1)}
		case 1:
			other := w // of which only the input is the same
			other.calls = randomCalls(g.r, 3)
			again = other
		case 2:
			again = group{in: w, keys: min(2, w.width()), calls: randomCalls(g.r, w.width())}
		}
		if g.r.IntN(3) == 0 {
			return union{w, g.fit(again, w.width())}
		}
		return g.narrow(join{[]string{"INNER", "LEFT", "FULL"}[g.r.IntN(3)], w, again, g.joinCondition(w.width(), again.width())})
	})
	registerLeaf("window top-n", 2, func(g *gen, _ int) query {
		return windowRank{tvf: g.tvf(g.timed("e", false), false), keys: g.r.IntN(2), order: g.totalOrder(3), n: 1 + g.r.Int64N(3)}
	})
	registerLeaf("window join", 2, func(g *gen, _ int) query {
		l := g.tvf(g.timed("e", false), false)
		r := l
		r.in = g.timed("f", false)
		kind := []string{"INNER", "LEFT", "RIGHT", "FULL", "SEMI", "ANTI"}[g.r.IntN(6)]
		return windowJoin{kind: kind, l: l, r: r, cond: equalPlus(g)}
	})
	registerLeaf("interval join", 3, func(g *gen, _ int) query {
		lo := g.r.Int64N(12) - 6
		j := intervalJoin{kind: []string{"INNER", "LEFT", "RIGHT", "FULL"}[g.r.IntN(4)], l: g.timed("e", false), r: g.timed("f", false), lo: lo, hi: lo + g.r.Int64N(8), cond: equalPlus(g)}
		if g.r.IntN(5) == 0 { // by processing time everything is near
			j.kind, j.l, j.r, j.lo, j.hi = "INNER", g.filtered("p"), g.filtered("p"), -5000, 5000
		}
		g.punctual = g.punctual || j.kind != "INNER" // a late row is padded
		return j
	})
	registerLeaf("temporal join", 3, func(g *gen, _ int) query {
		in := g.timed("e", false)
		if g.r.IntN(4) == 0 {
			in = g.filtered("w")
		}
		j := temporal{left: g.r.IntN(2) == 0, l: in, col: g.r.IntN(2)}
		if g.r.IntN(3) == 0 && !g.batch {
			j.history = g.history()
		}
		return j
	})
}

// history is a versioned table that a query makes: of each value of c0 the newest result of a window aggregation. All of them
// are versions, whatever merges changes.
type history struct {
	view string
	rows func(tables) []row // c0, c1, c2, its time in ms
}

func (g *gen) history() *history {
	w := windowed{tvf: g.tvf(timed{table: "f"}, false), keys: 1, calls: randomCalls(g.r, 3)[:1]}
	w.tvf.kind, w.tvf.size = "TUMBLE", 1+g.r.Int64N(4)
	text := strings.Replace(w.sql(), "SELECT ", "SELECT window_time AS ts, ", 1) + ", window_time"
	v := &view{fmt.Sprintf("view%d", len(g.views)), textQuery{"SELECT c0, c1, c2, ts FROM (SELECT c0, c2 AS c1, c3 AS c2, ts, ROW_NUMBER() OVER (PARTITION BY c0 ORDER BY ts DESC) AS rn FROM (" + text + ")) WHERE rn = 1"}}
	g.views = append(g.views, v)
	return &history{v.name, func(t tables) (out []row) {
		for _, r := range w.eval(t) {
			out = append(out, row{r[0], r[2], r[3], {v: r[2].v*1000 - 1}})
		}
		return out
	}}
}

// textQuery is the text of a query that others say the meaning of.
type textQuery struct{ text string }

func (q textQuery) width() int        { return 3 }
func (q textQuery) sql() string       { return q.text }
func (q textQuery) eval(tables) []row { return nil }

// equalPlus is an equality between three columns and three, sometimes with more.
func equalPlus(g *gen) scalar {
	c := binary("=", column(g.r.IntN(2)), column(3+g.r.IntN(2)), func(x, y int64) value { return truth(x == y) })
	if g.r.IntN(3) == 0 {
		c = logic("AND", c, randomCondition(g.r, 6, 1), 0)
	}
	return c
}

// timed is a table, or a query of an append table, with event time ts, the second c2, perhaps filtered.
type timed struct {
	table string
	query *timedQuery
	where *scalar
}

// timedQuery has columns c0, c1, c2 and ts, which is still event time.
type timedQuery struct {
	text string
	rows func(tables) []row
	// millis is how far ts is behind the second c2.
	millis int64
}

// timed is a table or a query over it; with unique its rows have times of their own if those of tables have.
func (g *gen) timed(table string, unique bool) timed {
	t := g.filtered(table)
	if g.r.IntN(3) > 0 {
		return t
	}
	in := timed{table: table}
	switch n := g.r.IntN(5); {
	case n == 0:
		t.query = &timedQuery{text: "SELECT c0, c1, c2, ts FROM e UNION ALL SELECT c1 AS c0, c0 AS c1, c2, ts FROM f", rows: func(t tables) []row {
			out := slices.Clone(onTime(t["e"]))
			for _, r := range onTime(t["f"]) {
				out = append(out, row{r[1], r[0], r[2]})
			}
			return out
		}}
	case n == 1:
		o := over{in: in, timed: &in, order: []orderKey{{col: 2}}, calls: callsOf(g.r, runningFns, 3)[:1], lo: unbounded}
		t.query = &timedQuery{text: "SELECT c0, c3 AS c1, c2, ts FROM (" + strings.Replace(o.sql(), "c2, ", "c2, ts, ", 1) + ")", rows: cut(o, 0, 3, 2)}
	case n == 2:
		j := temporal{left: g.r.IntN(2) == 0, l: in, col: g.r.IntN(2)}
		t.query = &timedQuery{text: "SELECT c0, c4 AS c1, c2, ts FROM (" + strings.Replace(j.sql(), "SELECT ", "SELECT l.ts AS ts, ", 1) + ")", rows: cut(j, 0, 4, 2)}
	case n == 3 && !unique:
		j := intervalJoin{kind: "INNER", l: in, r: timed{table: "f"}, lo: -g.r.Int64N(6), hi: g.r.Int64N(6), cond: equalPlus(g)}
		t.query = &timedQuery{text: "SELECT c0, c4 AS c1, c2, ts FROM (" + strings.Replace(j.sql(), "SELECT ", "SELECT l.ts AS ts, ", 1) + ")", rows: cut(j, 0, 4, 2)}
	case n == 4 && !unique:
		w := windowed{tvf: g.tvf(in, false), keys: 1, calls: randomCalls(g.r, 3)[:1]}
		text := strings.Replace(w.sql(), "SELECT ", "SELECT window_time AS ts, ", 1) + ", window_time"
		t.query = &timedQuery{text: "SELECT c0, c3 AS c1, c2 - 1 AS c2, ts FROM (" + text + ")", millis: 999, rows: func(t tables) []row {
			out := cut(w, 0, 3, 2)(t)
			for _, r := range out {
				r[2].v-- // window_time is a millisecond before the end
			}
			return out
		}}
	}
	return t
}

// filtered is a table, perhaps not all of it.
func (g *gen) filtered(table string) timed {
	t := timed{table: table}
	if g.r.IntN(3) == 0 {
		c := randomCondition(g.r, 3, 1)
		t.where = &c
	}
	return t
}

// onTime leaves out the rows that come behind the watermark: they are longer by a column.
func onTime(rows []row) (out []row) {
	for _, r := range rows {
		if len(r) == 3 {
			out = append(out, r)
		}
	}
	return out
}

// cut gives columns of a query.
func cut(q query, cols ...int) func(tables) []row {
	return func(t tables) (out []row) {
		for _, r := range q.eval(t) {
			o := make(row, len(cols))
			for i, c := range cols {
				o[i] = r[c]
			}
			out = append(out, o)
		}
		return out
	}
}

func (s timed) width() int { return 3 }

// millis is the time of a row.
func (s timed) millis(r row) int64 {
	if s.query != nil {
		return r[2].v*1000 + s.query.millis
	}
	return r[2].v * 1000
}

func (s timed) sql() string {
	from := s.table
	if s.query != nil {
		from = "(" + s.query.text + ")"
	}
	out := "SELECT c0, c1, c2, ts FROM " + from
	if s.where != nil {
		out += " WHERE " + s.where.sql
	}
	return out
}

func (s timed) eval(t tables) (out []row) {
	rows := onTime(t[s.table])
	if s.query != nil {
		rows = checkRows(s.query.rows(t))
	}
	for _, r := range rows {
		if s.where == nil || isTrue(s.where.eval(r)) {
			out = append(out, r)
		}
	}
	return out
}

// tvf is a window function over a timed table.
type tvf struct {
	in         timed
	kind       string
	step, size int64 // seconds; TUMBLE has size, SESSION its gap
	keys       int   // PARTITION BY of SESSION: columns 0 to keys-1
}

func (g *gen) tvf(in timed, sessions bool) tvf {
	kinds := []string{"TUMBLE", "HOP", "CUMULATE", "SESSION"}
	if !sessions {
		kinds = kinds[:3]
	}
	w := tvf{in: in, kind: kinds[g.r.IntN(len(kinds))], step: 1 + g.r.Int64N(5)}
	w.size = w.step * (1 + g.r.Int64N(3))
	if w.kind == "SESSION" {
		w.keys, w.size = g.r.IntN(3), 1+g.r.Int64N(3)
		g.punctual = true // a late row that lengthens a session that is still open counts, and sessions are of any length
	}
	return w
}

func (w tvf) sql() string {
	table, args := "TABLE "+w.in.table, fmt.Sprintf("INTERVAL '%d' SECOND", w.size)
	query := w.in.where != nil || w.in.query != nil
	if query {
		table = "(" + w.in.sql() + ")"
	}
	switch {
	case w.kind == "HOP" || w.kind == "CUMULATE":
		args = fmt.Sprintf("INTERVAL '%d' SECOND, ", w.step) + args
	case w.keys > 0:
		if query {
			table = "TABLE " + table
		}
		table += " PARTITION BY (" + []string{"", "c0", "c0, c1"}[w.keys] + ")"
	}
	return fmt.Sprintf("TABLE(%s(%s, DESCRIPTOR(ts), %s))", w.kind, table, args)
}

func (w tvf) eval(t tables) (out []row) { return w.windows(w.in.eval(t)) }

// windows gives each of rows with the start and end of each of its windows.
func (w tvf) windows(rows []row) (out []row) {
	add := func(r row, start, end int64) {
		out = append(out, append(append(row{}, r...), value{v: start}, value{v: end}))
	}
	if w.kind == "SESSION" {
		return w.sessions(rows)
	}
	for _, r := range rows {
		at := r[2].v
		switch w.kind {
		case "TUMBLE":
			add(r, at/w.size*w.size, at/w.size*w.size+w.size)
		case "HOP":
			for start := -w.size / w.step * w.step; start <= at; start += w.step {
				if at < start+w.size {
					add(r, start, start+w.size)
				}
			}
		case "CUMULATE":
			start := at / w.size * w.size
			for end := start + w.step; end <= start+w.size; end += w.step {
				if at < end {
					add(r, start, end)
				}
			}
		}
	}
	return out
}

func (w tvf) sessions(rows []row) (out []row) {
	for _, part := range partitions(rows, []int{0, 1}[:w.keys]) {
		slices.SortFunc(part, func(a, b row) int { return int(a[2].v - b[2].v) })
		for i := 0; i < len(part); {
			j := i + 1
			for j < len(part) && part[j][2].v <= part[j-1][2].v+w.size {
				j++
			}
			for _, r := range part[i:j] {
				out = append(out, append(append(row{}, r...), value{v: part[i][2].v}, value{v: part[j-1][2].v + w.size}))
			}
			i = j
		}
	}
	return out
}

// second is the SQL of a time as seconds since 1970.
func second(sql string) string {
	return "CAST(TIMESTAMPDIFF(SECOND, TIMESTAMP '1970-01-01 00:00:00', " + sql + ") AS BIGINT)"
}

// windowed is GROUP BY columns 0 to keys-1 and the window, with rollup ROLLUP of the columns; with legacy the window is a
// function of GROUP BY.
type windowed struct {
	tvf    tvf
	keys   int
	where  *scalar
	rollup bool
	legacy bool
	calls  []call
}

func (w windowed) width() int { return w.keys + 2 + len(w.calls) }

func (w windowed) sql() string {
	var items, keys []string
	for i := range w.keys {
		items, keys = append(items, fmt.Sprintf("c%d", i)), append(keys, fmt.Sprintf("c%d", i))
	}
	if w.rollup {
		keys = []string{"ROLLUP (" + strings.Join(keys, ", ") + ")"}
	}
	start, end, from := "window_start", "window_end", ""
	if by := []string{start, end}; w.legacy {
		args := fmt.Sprintf("(ts, INTERVAL '%d' SECOND)", w.tvf.size)
		if w.tvf.kind == "HOP" {
			args = fmt.Sprintf("(ts, INTERVAL '%d' SECOND, INTERVAL '%d' SECOND)", w.tvf.step, w.tvf.size)
		}
		start, end, from = w.tvf.kind+"_START"+args, w.tvf.kind+"_END"+args, "("+w.tvf.in.sql()+")"
		keys = append(keys, w.tvf.kind+args)
	} else {
		from, keys = w.tvf.sql(), append(by, keys...)
	}
	items = append(items, second(start), second(end))
	for _, c := range w.calls {
		items = append(items, c.sql())
	}
	for i := range items {
		items[i] += fmt.Sprintf(" AS c%d", i)
	}
	out := "SELECT " + strings.Join(items, ", ") + " FROM " + from
	if w.where != nil {
		out += " WHERE " + w.where.sql
	}
	return out + " GROUP BY " + strings.Join(keys, ", ")
}

// rows are the rows that count, with their windows: WHERE is above a window function, and below GROUP BY SESSION(…), whose sessions
// are those of the rows left.
func (w windowed) rows(t tables) []row {
	if w.legacy {
		return w.tvf.windows(w.left(w.tvf.in.eval(t)))
	}
	return w.left(w.tvf.eval(t))
}

// left are the rows of which WHERE holds.
func (w windowed) left(rows []row) (out []row) {
	for _, r := range rows {
		if w.where == nil || isTrue(w.where.eval(r)) {
			out = append(out, r)
		}
	}
	return out
}

func (w windowed) eval(t tables) []row { return w.grouped(w.rows(t)) }

// grouped are the results of rows with their windows.
func (w windowed) grouped(in []row) (out []row) {
	from := w.keys
	if w.rollup {
		from = 0
	}
	for n := from; n <= w.keys; n++ {
		groups, keys := map[string][]row{}, map[string]row{}
		for _, r := range in {
			k := append(append(append(row{}, r[:n]...), nulls(w.keys-n)...), r[3], r[4])
			groups[k.String()], keys[k.String()] = append(groups[k.String()], r), k
		}
		for name, rows := range groups {
			o := append(row{}, keys[name]...)
			for _, c := range w.calls {
				o = append(o, c.eval(rows))
			}
			out = append(out, o)
		}
	}
	return out
}

// windowRank is Top-N in each window, by columns 0 to keys-1.
type windowRank struct {
	tvf   tvf
	keys  int
	order []orderKey
	n     int64
}

func (w windowRank) width() int { return 6 }

func (w windowRank) sql() string {
	by := strings.Join([]string{"window_start", "window_end", "c0"}[:2+w.keys], ", ")
	return fmt.Sprintf("SELECT c0, c1, c2, %s AS c3, %s AS c4, rn AS c5 FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY %s ORDER BY %s) AS rn FROM %s) WHERE rn <= %d",
		second("window_start"), second("window_end"), by, orderSQL(w.order), w.tvf.sql(), w.n)
}

func (w windowRank) eval(t tables) (out []row) {
	for _, rows := range partitions(w.tvf.eval(t), []int{3, 4, 0}[:2+w.keys]) {
		slices.SortFunc(rows, func(a, b row) int { return compareRows(w.order, a, b) })
		for i, r := range rows[:min(len(rows), int(w.n))] {
			out = append(out, append(append(row{}, r...), value{v: int64(i) + 1}))
		}
	}
	return out
}

// windowJoin joins rows of the same window; SEMI and ANTI are EXISTS and NOT EXISTS.
type windowJoin struct {
	kind string
	l, r tvf
	cond scalar
}

func (j windowJoin) half() bool { return j.kind == "SEMI" || j.kind == "ANTI" }

func (j windowJoin) width() int {
	if j.half() {
		return 3
	}
	return 6
}

func (j windowJoin) sql() string {
	on := "l.window_start = r.window_start AND l.window_end = r.window_end AND " + ofSides(j.cond.sql, 3)
	l, r := "(SELECT * FROM "+j.l.sql()+") AS l", "(SELECT * FROM "+j.r.sql()+") AS r"
	if j.half() {
		return fmt.Sprintf("SELECT c0, c1, c2 FROM %s WHERE %sEXISTS (SELECT * FROM %s WHERE %s)", l, map[string]string{"ANTI": "NOT "}[j.kind], r, on)
	}
	return fmt.Sprintf("SELECT %s FROM %s %s JOIN %s ON %s", sides(3, 3), l, j.kind, r, on)
}

func (j windowJoin) eval(t tables) (out []row) {
	left, right := j.l.eval(t), j.r.eval(t)
	checkPairs(len(left), len(right))
	on := func(l, r row) bool { return l[3] == r[3] && l[4] == r[4] && isTrue(j.cond.eval(both(l[:3], r[:3]))) }
	if !j.half() {
		return joinRows(j.kind, left, right, 3, 3, on)
	}
	for _, l := range left {
		if slices.ContainsFunc(right, func(r row) bool { return on(l, r) }) == (j.kind == "SEMI") {
			out = append(out, l[:3])
		}
	}
	return out
}

// intervalJoin joins rows of r from lo to hi seconds after those of l.
type intervalJoin struct {
	kind   string
	l, r   timed
	lo, hi int64
	cond   scalar
}

func (j intervalJoin) width() int { return 6 }

func (j intervalJoin) sql() string {
	at := func(n int64) string {
		if n < 0 {
			return fmt.Sprintf("l.ts - INTERVAL '%d' SECOND(4)", -n)
		}
		return fmt.Sprintf("l.ts + INTERVAL '%d' SECOND(4)", n)
	}
	return fmt.Sprintf("SELECT %s FROM (%s) AS l %s JOIN (%s) AS r ON %s AND r.ts BETWEEN %s AND %s",
		sides(3, 3), j.l.sql(), j.kind, j.r.sql(), ofSides(j.cond.sql, 3), at(j.lo), at(j.hi))
}

func (j intervalJoin) eval(t tables) []row {
	return joinRows(j.kind, j.l.eval(t), j.r.eval(t), 3, 3, func(l, r row) bool {
		d := j.r.millis(r) - j.l.millis(l)
		return d >= j.lo*1000 && d <= j.hi*1000 && isTrue(j.cond.eval(both(l, r)))
	})
}

// temporal joins the version by key c0 that was valid at the time of the left row: of table v, or of a history.
type temporal struct {
	left    bool
	l       timed
	col     int
	history *history
}

func (j temporal) width() int { return 6 }

func (j temporal) sql() string {
	kind := "INNER"
	if j.left {
		kind = "LEFT"
	}
	name := "v"
	if j.history != nil {
		name = j.history.view
	}
	return fmt.Sprintf("SELECT %s FROM (%s) AS l %s JOIN %s FOR SYSTEM_TIME AS OF l.ts AS r ON l.c%d = r.c0", sides(3, 3), j.l.sql(), kind, name, j.col)
}

// versions are, with NULL as a key like others, as Flink has it, rows of three columns, the time in ms, and 1 in a delete.
func (j temporal) versions(t tables) (out []row) {
	if j.history == nil {
		for _, v := range t["v"] {
			out = append(out, row{v[0], v[1], v[2], {v: v[2].v * 1000}, v[3]})
		}
		return out
	}
	for _, v := range j.history.rows(t) {
		out = append(out, append(v, value{}))
	}
	return out
}

func (j temporal) eval(t tables) (out []row) {
	versions := j.versions(t)
	for _, l := range j.l.eval(t) {
		version := row(nil)
		for _, v := range versions {
			if v[0] == l[j.col] && v[3].v <= j.l.millis(l) && (version == nil || version[3].v < v[3].v) {
				version = v
			}
		}
		if version != nil && version[4].v == 1 { // deleted
			version = nil
		}
		switch {
		case version != nil:
			out = append(out, both(l, version[:3]))
		case j.left:
			out = append(out, both(l, nulls(3)))
		}
	}
	return out
}
