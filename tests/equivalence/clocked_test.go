package equivalence

import (
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/sql/types"
)

// A clocked trial is about what happens by the clock: state that expires, windows, OVER and deduplication by processing time,
// sources that are idle. Its clock stands still while rows come and moves when all of them are covered by a checkpoint, so that
// the time of each row is known. The rows of table t with that time, in ms, as their last column are those of table t@.

// clockedQuery is a query whose result depends on when rows came.
type clockedQuery struct {
	text     string
	cols     int
	settings map[string]string
	result   func(tables) []row
	idle     bool // the third column of e, f and v is the event time, else it counts rows
}

func (q clockedQuery) width() int          { return q.cols }
func (q clockedQuery) sql() string         { return q.text }
func (q clockedQuery) eval(t tables) []row { return q.result(t) }

var clockedQueries = []func(g *gen) clockedQuery{expiringGroup, expiringDistinct, expiringJoin, expiringDedup, proctimeWindow, proctimeWindow, proctimeOver, proctimeJoin, idleSources, idleSources}

// clockStart is when the clock of a clocked trial starts, in ms.
const clockStart = 1_000_000

// clockTick is in every move of the clock, so that no two times of rows are whole seconds apart, and nothing happens just when
// something else ends.
const clockTick = 7

// burst sends rows of the tables, all at one time of the clock.
func (x *trial) burst(k int, final tables) {
	for n := range x.r.IntN(8) {
		table := x.tables[x.r.IntN(len(x.tables))]
		v, kind := row{x.value(), x.value(), {v: int64(len(final[table]))}}, types.Insert
		if strings.Contains("efv", table) && x.idle {
			v[2] = value{v: 20 + 2*int64(k) + x.r.Int64N(9)} // never behind the watermark, whoever is idle
			if x.unique {
				v[2] = value{v: 20 + 8*int64(k) + int64(n)}
			}
		}
		if table == "v" {
			v[0].null = false
			if slices.ContainsFunc(final[table], func(r row) bool { return r[0] == v[0] && r[2] == v[2] }) {
				continue
			}
			kind = types.UpdateAfter
		}
		x.send(table, kind, v)
		final[table+"@"] = append(final[table+"@"], append(slices.Clone(v), value{v: x.clock.Load()}))
		if table == "v" {
			v = append(v, value{})
		}
		final[table] = append(final[table], v)
		if x.r.IntN(x.bursts) == 0 {
			x.flush()
		}
		x.disturb()
	}
}

// clocked feeds a clocked trial.
func (x *trial) clocked() tables {
	final := tables{}
	for k := range 2 + x.r.IntN(10) {
		x.burst(k, final)
		x.settle()
		step := x.r.Int64N(4)
		if x.r.IntN(3) == 0 {
			step = 10 + x.r.Int64N(60)
		}
		x.clock.Add(step*1000 + clockTick)
		if x.r.IntN(2) == 0 {
			x.settle()
		}
	}
	x.clock.Add(1_000_000)
	x.settle()
	_ = checkpoint.SetFailpoint("")
	for _, table := range x.tables {
		x.bus.Feed(table).Close()
	}
	return final
}

// settle waits until two checkpoints cover all rows sent: the first shows that they are read, and what the clock has made due is
// done before the second.
func (x *trial) settle() {
	x.flush()
	for n := 0; n < 2; {
		_, err := x.job.Checkpoint(x.ctx)
		switch {
		case x.ctx.Err() != nil || err != nil && x.job.Status().State.Ended():
			x.fatal(fmt.Errorf("%w: %v", err, x.job.Wait(x.ctx)))
		case err == nil && x.covered():
			n++
		}
	}
}

func (x *trial) covered() bool {
	for p, rows := range x.sent {
		if x.bus.Feed(p.table).Committed(p.split) < int64(len(rows)) {
			return false
		}
	}
	return true
}

func ttl(g *gen) (ms int64, settings map[string]string) {
	ms = 1000 * (3 + g.r.Int64N(20))
	return ms, map[string]string{"table.exec.state.ttl": fmt.Sprintf("%d ms", ms)}
}

// lives are the rows of each key, cut where none came for ms.
func lives(rows []row, keys []int, ms int64) (out [][]row) {
	for _, part := range partitions(rows, keys) {
		start := 0
		for i := 1; i <= len(part); i++ {
			if i == len(part) || part[i][3].v-part[i-1][3].v >= ms {
				out, start = append(out, part[start:i]), i
			}
		}
	}
	return out
}

// expiringGroup is GROUP BY whose groups start afresh when no row came for long.
func expiringGroup(g *gen) clockedQuery {
	ms, settings := ttl(g)
	q := group{in: scan{"a"}, keys: g.r.IntN(3), calls: runningCalls(g.r, 3)}
	for i := range q.calls { // a value counted lives by itself
		q.calls[i].distinct = false
	}
	return clockedQuery{q.sql(), q.width(), settings, func(t tables) (out []row) {
		for _, rows := range lives(t["a@"], []int{0, 1}[:q.keys], ms) {
			out = append(out, group{in: fixed{rows}, keys: q.keys, calls: q.calls}.eval(nil)...)
		}
		if len(t["a@"]) == 0 {
			return q.eval(t)
		}
		return out
	}, false}
}

// fixed are rows.
type fixed struct{ rows []row }

func (f fixed) width() int        { return 3 }
func (f fixed) sql() string       { return "" }
func (f fixed) eval(tables) []row { return f.rows }

func expiringDistinct(g *gen) clockedQuery {
	ms, settings := ttl(g)
	q := distinct{project{scan{"a"}, []scalar{column(0), column(1)}}}
	return clockedQuery{q.sql(), 2, settings, func(t tables) (out []row) {
		for _, rows := range lives(t["a@"], []int{0, 1}, ms) {
			out = append(out, rows[0][:2])
		}
		return out
	}, false}
}

// expiringJoin is a regular join whose sides may live for different times. A row lives from when it came; on a side whose rows
// leave for want of a partner also from when it last found one, as the number of its partners is kept with it.
func expiringJoin(g *gen) clockedQuery {
	ms, settings := ttl(g)
	ttls := [2]int64{ms, ms}
	kind := []string{"INNER", "LEFT", "RIGHT", "FULL", "SEMI", "ANTI"}[g.r.IntN(6)]
	on := binary("=", column(0), column(3), func(x, y int64) value { return truth(x == y) })
	text := join{kind, scan{"a"}, scan{"e"}, on}.sql()
	half := kind == "SEMI" || kind == "ANTI"
	if half {
		text = semi{l: scan{"a"}, r: scan{"e"}, lcol: -1, cond: &on, not: kind == "ANTI"}.sql()
	} else if g.r.IntN(2) == 0 {
		ttls[1], _ = ttl(g)
		text = strings.Replace(text, "SELECT", fmt.Sprintf("SELECT /*+ STATE_TTL('l' = '%d ms', 'r' = '%d ms') */", ttls[0], ttls[1]), 1)
	}
	outer := [2]bool{half || kind == "LEFT" || kind == "FULL", kind == "RIGHT" || kind == "FULL"}
	width := 6
	if half {
		width = 3
	}
	return clockedQuery{text: text, cols: width, settings: settings, result: func(t tables) (out []row) {
		pairs, alone := joinByClock(t["a@"], t["e@"], ttls, outer)
		switch kind {
		case "ANTI":
			return alone[0]
		case "SEMI":
			for _, l := range t["a@"] {
				if !slices.ContainsFunc(alone[0], func(r row) bool { return slices.Equal(r, l[:3]) }) {
					out = append(out, l[:3])
				}
			}
			return out
		}
		for s, rows := range alone {
			for _, r := range rows {
				if !outer[s] {
					continue
				}
				if x := both(r, nulls(3)); s == 0 {
					pairs = append(pairs, x)
				} else {
					pairs = append(pairs, both(nulls(3), r))
				}
			}
		}
		return pairs
	}}
}

// joinByClock joins rows by c0 as they come, the last column their time: the pairs, and the rows that never found a partner. The
// rows of a side are there for so long; those of an outer side again for so long when they find a partner.
func joinByClock(left, right []row, ttl [2]int64, outer [2]bool) (pairs []row, alone [2][]row) {
	type live struct {
		row
		at      int64
		matched bool
	}
	var sides [2][]*live
	for at := range mergeByClock(left, right) {
		s := at.side
		n := &live{row: at.row[:3:3], at: at.row[3].v}
		for _, o := range sides[1-s] {
			if n.at-o.at >= ttl[1-s] || n.row[0].null || n.row[0] != o.row[0] {
				continue
			}
			n.matched, o.matched = true, true
			if outer[1-s] {
				o.at = n.at
			}
			if s == 0 {
				pairs = append(pairs, both(n.row, o.row))
			} else {
				pairs = append(pairs, both(o.row, n.row))
			}
		}
		sides[s] = append(sides[s], n)
	}
	for s := range sides {
		for _, n := range sides[s] {
			if !n.matched {
				alone[s] = append(alone[s], n.row)
			}
		}
	}
	return pairs, alone
}

type sideRow struct {
	side int
	row  row
}

// mergeByClock gives the rows of both sides in the order of their times.
func mergeByClock(left, right []row) iter.Seq[sideRow] {
	return func(yield func(sideRow) bool) {
		for len(left)+len(right) > 0 {
			next := sideRow{side: 1}
			if len(right) == 0 || len(left) > 0 && left[0][3].v <= right[0][3].v {
				next, left = sideRow{0, left[0]}, left[1:]
			} else {
				next.row, right = right[0], right[1:]
			}
			if !yield(next) {
				return
			}
		}
	}
}

// proctimeJoin is an interval join by processing time. No bound is 0: a row is not kept for those that come in its millisecond,
// as by Flink.
func proctimeJoin(g *gen) clockedQuery {
	lo, hi := int64(0), int64(0)
	for lo == 0 || hi == 0 {
		lo = g.r.Int64N(12) - 6
		hi = lo + g.r.Int64N(8)
	}
	j := intervalJoin{kind: []string{"INNER", "LEFT", "RIGHT", "FULL"}[g.r.IntN(4)], l: g.filtered("p"), r: g.filtered("p"), lo: lo, hi: hi, cond: equalPlus(g)}
	return clockedQuery{text: j.sql(), cols: 6, result: func(t tables) []row {
		rows := func(s timed) (out []row) {
			for _, r := range t["p@"] {
				if s.where == nil || isTrue(s.where.eval(r)) {
					out = append(out, r)
				}
			}
			return out
		}
		return joinRows(j.kind, rows(j.l), rows(j.r), 3, 3, func(l, r row) bool {
			d := r[3].v - l[3].v
			return d >= j.lo*1000 && d <= j.hi*1000 && isTrue(j.cond.eval(both(l[:3], r[:3])))
		})
	}}
}

// expiringDedup keeps the first or last row by processing time. The first one lives from when it came.
func expiringDedup(g *gen) clockedQuery {
	ms, settings := ttl(g)
	d := dedup{in: timed{table: "p"}, partition: g.r.IntN(2), last: g.r.IntN(2) == 0}
	return clockedQuery{d.sql(), 3, settings, func(t tables) (out []row) {
		if d.last {
			for _, rows := range lives(t["p@"], []int{d.partition}, ms) {
				out = append(out, rows[len(rows)-1][:3])
			}
			return out
		}
		for _, rows := range partitions(t["p@"], []int{d.partition}) {
			since := int64(-1)
			for _, r := range rows {
				if since < 0 || r[3].v-since >= ms {
					out, since = append(out, r[:3]), r[3].v
				}
			}
		}
		return out
	}, false}
}

// proctimeWindow is GROUP BY a window by processing time.
func proctimeWindow(g *gen) clockedQuery {
	w := windowed{tvf: g.tvf(timed{table: "p"}, true), keys: g.r.IntN(3), calls: randomCalls(g.r, 3)}
	if w.tvf.kind == "SESSION" {
		w.keys = w.tvf.keys
	}
	if g.r.IntN(3) == 0 {
		c := randomCondition(g.r, 3, 1)
		w.where = &c
	}
	w.legacy = w.tvf.kind != "CUMULATE" && g.r.IntN(4) == 0
	if w.tvf.kind == "SESSION" && !w.legacy { // refused by name
		w.where = nil
	}
	return clockedQuery{w.sql(), w.width(), nil, func(t tables) []row {
		rows := t["p@"]
		if w.legacy {
			rows = w.left(rows)
		}
		return w.grouped(w.left(w.tvf.byClock(rows)))
	}, false}
}

// byClock gives rows with their time in ms at the end the windows of that time.
func (w tvf) byClock(rows []row) (out []row) {
	if w.kind == "SESSION" {
		for _, part := range partitions(rows, []int{0, 1}[:w.keys]) {
			for i := 0; i < len(part); {
				j := i + 1
				for j < len(part) && part[j][3].v < part[j-1][3].v+w.size*1000 {
					j++
				}
				for _, r := range part[i:j] {
					out = append(out, row{r[0], r[1], r[2], {v: part[i][3].v / 1000}, {v: (part[j-1][3].v + w.size*1000) / 1000}})
				}
				i = j
			}
		}
		return out
	}
	for _, r := range rows {
		for _, in := range w.windows([]row{{r[0], r[1], {v: r[3].v / 1000}}}) {
			in[2] = r[2]
			out = append(out, in)
		}
	}
	return out
}

// proctimeOver is OVER by processing time. In a frame of time the rows of one time are peers, in others they have an order.
func proctimeOver(g *gen) clockedQuery {
	o := over{in: timed{table: "p"}, timed: &timed{table: "p"}, order: []orderKey{{col: 3}}, lo: unbounded, rows: g.r.IntN(2) == 0, calls: runningCalls(g.r, 3)}
	if g.r.IntN(3) > 0 {
		o.lo = g.r.Int64N(8)
	}
	o.partition = g.r.Perm(2)[:g.r.IntN(2)]
	inRange := !o.rows && o.lo != unbounded
	return clockedQuery{o.sql(), o.width(), nil, func(t tables) (out []row) {
		for _, rows := range partitions(t["p@"], o.partition) {
			for i, r := range rows {
				var frame []row
				for j, x := range rows {
					switch back := r[3].v - x[3].v; {
					case inRange && back >= 0 && back <= o.lo*1000, !inRange && j <= i && (o.lo == unbounded || int64(i-j) <= o.lo):
						frame = append(frame, x)
					}
				}
				n := append(row{}, r[:3]...)
				for _, c := range o.calls {
					n = append(n, c.eval(frame))
				}
				out = append(out, n)
			}
		}
		return out
	}, false}
}

// idleSources is a query of event time while splits and tables pause: nothing may be lost or come twice for it.
func idleSources(g *gen) clockedQuery {
	settings := map[string]string{"table.exec.source.idle-timeout": fmt.Sprintf("%d s", 1+g.r.Int64N(30))}
	in := g.filtered("e")
	var q query
	switch g.r.IntN(8) {
	case 5:
		q = windowRank{tvf: g.tvf(in, false), keys: g.r.IntN(2), order: g.totalOrder(3), n: 1 + g.r.Int64N(3)}
	case 6:
		g.unique = true
		q = dedup{in: in, partition: g.r.IntN(2), last: g.r.IntN(2) == 0}
	case 7:
		g.unique = true
		q = match{in: in, partition: g.r.IntN(3) - 1, first: g.matchTest("a", false), middle: g.matchTest("b", true), last: g.matchTest("c", true), quantifier: quantifiers[g.r.IntN(len(quantifiers))], within: g.r.Int64N(2) * (1 + g.r.Int64N(20))}
	case 0:
		q = windowed{tvf: g.tvf(in, true), calls: randomCalls(g.r, 3)}
		if w := q.(windowed); w.tvf.kind == "SESSION" {
			w.keys = w.tvf.keys
			q = w
		}
	case 1:
		l := g.tvf(in, false)
		r := l
		r.in = g.filtered("f")
		q = windowJoin{kind: []string{"INNER", "LEFT", "RIGHT", "FULL", "SEMI", "ANTI"}[g.r.IntN(6)], l: l, r: r, cond: equalPlus(g)}
	case 2:
		lo := g.r.Int64N(12) - 6
		q = intervalJoin{kind: []string{"INNER", "LEFT", "RIGHT", "FULL"}[g.r.IntN(4)], l: in, r: g.filtered("f"), lo: lo, hi: lo + g.r.Int64N(8), cond: equalPlus(g)}
	case 3:
		q = temporal{left: g.r.IntN(2) == 0, l: in, col: g.r.IntN(2)}
	default:
		o := over{in: in, timed: &in, order: []orderKey{{col: 2}}, calls: callsOf(g.r, runningFns, 3), lo: g.r.Int64N(12) - 1}
		o.partition = g.r.Perm(2)[:g.r.IntN(2)]
		q = o
	}
	return clockedQuery{q.sql(), q.width(), settings, q.eval, true}
}

// now is the clock of a clocked trial.
func (x *trial) now() time.Time { return time.UnixMilli(x.clock.Load()) }
