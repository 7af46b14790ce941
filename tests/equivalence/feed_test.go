package equivalence

// What a trial does: it sends rows, and disturbs the job.

import (
	"fmt"
	"slices"
	"strings"

	"github.com/streamsql/streamsql"
	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/connectors/memory"
	"github.com/streamsql/streamsql/sql/types"
)

// feed sends random changes to all tables and does things to the job in between. It returns what the tables hold at the
// end.
func (x *trial) feed() tables {
	final := tables{}
	keyed := map[int64]row{}
	taken := map[int64]bool{}
	n := 1 + x.r.IntN(x.rows*(1+len(x.tables)))
	early := n // when one table ends before the others do
	if x.r.IntN(3) == 0 {
		early = x.r.IntN(n)
	}
	open := slices.Clone(x.tables)
	for i := range n {
		if i == early && len(open) > 1 && len(x.views) == 0 { // a view may be unused, and its table the last one that the job does not read
			x.flush()
			k := x.r.IntN(len(open))
			x.bus.Feed(open[k]).Close()
			open = slices.Delete(open, k, k+1)
		}
		table := open[x.r.IntN(len(open))]
		v := row{x.value(), x.value(), x.value()}
		switch table {
		case "e", "f":
			v[2] = value{v: x.time(i, x.unique, taken)}
			at := x.latest()
			if at > 0 {
				v[2].v = x.r.Int64N(at)
			}
			x.send(table, types.Insert, v)
			if at > 0 {
				v = append(v, value{})
			}
			final[table] = append(final[table], v)
		case "v":
			v[0].null, v[2] = false, value{v: x.time(i, false, taken)}
			if old := final[table]; slices.ContainsFunc(old, func(r row) bool { return r[0] == v[0] && r[2] == v[2] }) {
				continue // the last of two versions of one time counts, but nothing here is about that
			}
			kind, gone := types.UpdateAfter, value{}
			if x.r.IntN(4) == 0 {
				kind, gone = types.Delete, value{v: 1}
			}
			x.send(table, kind, v)
			final[table] = append(final[table], append(v, gone))
		case "w":
			v[2] = value{v: x.time(i, false, taken)}
			live := final[table]
			if k := x.r.IntN(4 * (1 + len(live))); k < len(live) && live[k][2].v >= 20+int64(i)/2 { // in time to be taken back
				x.send(table, types.Delete, live[k])
				live = slices.Delete(live, k, k+1)
			}
			x.send(table, types.Insert, v)
			final[table] = append(live, v)
		case "p":
			v[2] = value{v: int64(len(final[table]))}
			x.send(table, types.Insert, v)
			final[table] = append(final[table], v)
		case "a":
			x.send(table, types.Insert, v)
			final[table] = append(final[table], v)
		case "u":
			v[0].null = false
			if x.r.IntN(4) == 0 {
				delete(keyed, v[0].v)
				x.send(table, types.Delete, v)
			} else {
				keyed[v[0].v] = v
				x.send(table, []types.RowKind{types.Insert, types.UpdateAfter}[x.r.IntN(2)], v)
			}
		case "r":
			final[table] = x.retract(final[table], v)
		}
		if x.r.IntN(x.bursts) == 0 {
			x.flush()
		}
		x.disturb()
	}
	x.flush()
	_ = checkpoint.SetFailpoint("")
	for _, table := range append([]string{"v"}, tableNames...) {
		x.bus.Feed(table).Close()
	}
	for _, v := range keyed {
		final["u"] = append(final["u"], v)
	}
	return final
}

// time is the second of row i: at most 9 behind the latest one, so never late.
func (x *trial) time(i int, unique bool, taken map[int64]bool) int64 {
	if !unique {
		return 20 + int64(i)/2 + x.r.Int64N(9)
	}
	for {
		if at := 20 + int64(i) + x.r.Int64N(9); !taken[at] {
			taken[at] = true
			return at
		}
	}
}

// latest is a second before which a row is late for every operator of event time, now and then; mostly 0. A checkpoint covers
// rows that moved the watermark of every split 30 seconds behind it: no window and no join reaches as far.
func (x *trial) latest() int64 {
	if !x.late || x.r.IntN(6) > 0 {
		return 0
	}
	passed := int64(1 << 40)
	for _, table := range x.tables {
		if !strings.Contains("efvw", table) {
			continue
		}
		for split := range max(1, x.splits[table]) {
			n, most := x.bus.Feed(table).Committed(split), int64(0)
			for _, at := range x.sent[feedPlace{table, split}][:n] {
				most = max(most, at)
			}
			passed = min(passed, most)
		}
	}
	return max(0, passed-10-30)
}

// retract sends an insert of v to table r, or a change of one of its rows, and returns the rows then.
func (x *trial) retract(live []row, v row) []row {
	if len(live) == 0 || x.r.IntN(2) == 0 {
		x.send("r", types.Insert, v)
		return append(live, v)
	}
	k := x.r.IntN(len(live))
	old := live[k]
	if x.r.IntN(2) == 0 {
		x.send("r", types.Delete, old)
		return append(live[:k:k], live[k+1:]...)
	}
	x.send("r", types.UpdateBefore, old)
	x.send("r", types.UpdateAfter, v)
	live[k] = v
	return live
}

func (x *trial) value() value {
	if x.r.IntN(3) == 0 {
		return value{v: x.r.Int64N(x.domain)}
	}
	return randomValue(x.r)
}

// send adds a row to a random split of a table that may have several: the others' rows have to stay in order.
func (x *trial) send(table string, k types.RowKind, r row) {
	out := memory.Row{Kind: k}
	for _, v := range r {
		d := types.IntDatum(v.v)
		if v.null {
			d = types.NullDatum
		}
		out.Values = append(out.Values, d)
	}
	split := 0
	if n := x.splits[table]; n > 1 {
		split = x.r.IntN(n)
	}
	place := feedPlace{table, split}
	x.pending[place] = append(x.pending[place], out)
	x.sent[place] = append(x.sent[place], r[2].v)
}

// flush gives the job the rows sent so far.
func (x *trial) flush() {
	for p, rows := range x.pending {
		x.bus.Feed(p.table).Append(p.split, rows...)
		delete(x.pending, p)
	}
}

// disturb now and then takes a checkpoint, arms a failure, or stops the job and starts it again.
func (x *trial) disturb() {
	switch x.r.IntN(24 * x.rows / 40) {
	case 0, 1:
		if _, err := x.job.Checkpoint(x.ctx); err != nil && x.job.Status().State.Ended() {
			x.t.Fatalf("%s\n%v: %v", x.what, err, x.job.Wait(x.ctx))
		}
	case 2:
		point := points[x.r.IntN(len(points))]
		if err := checkpoint.SetFailpoint(fmt.Sprintf("%s:%d:error", point, 1+x.r.IntN(2))); err != nil {
			x.t.Fatal(err)
		}
	case 3:
		if !x.dir || x.r.IntN(2) == 0 {
			return
		}
		_ = checkpoint.SetFailpoint("")
		// A failure that is under way when Stop is asked ends the job; it goes on all the same. What fails first may be the
		// last checkpoint, for want of a task that the failure has ended.
		err := x.job.Stop(x.ctx, streamsql.StopOptions{})
		if err != nil && !strings.Contains(err.Error(), "failpoint") && !strings.Contains(err.Error(), "the task has ended") {
			x.fatal(err)
		}
		p := []string{"1", "2", "3", "4"}[x.r.IntN(4)]
		if _, err := x.eng.Exec(x.ctx, "SET 'parallelism.default' = '"+p+"'"); err != nil {
			x.t.Fatal(err)
		}
		// Two phases have the state of one, and aggregations with mini-batches that of those without; a Top-N has not.
		phase := []string{"AUTO", "ONE_PHASE", "TWO_PHASE"}[x.r.IntN(3)]
		set := "SET 'table.optimizer.agg-phase-strategy' = '" + phase + "'"
		if !x.late && !x.ranks() {
			set += fmt.Sprintf("; SET 'table.exec.mini-batch.allow-latency' = '7 ms'; SET 'table.exec.mini-batch.size' = '5'; SET 'table.exec.mini-batch.enabled' = '%v'", x.r.IntN(2) == 0)
		}
		for _, s := range strings.Split(set, "; ") {
			if _, err := x.eng.Exec(x.ctx, s); err != nil {
				x.t.Fatal(err)
			}
		}
		x.start()
	case 4:
		if x.dir {
			x.killed()
		}
	}
}

// killed ends the job behind a checkpoint, without a last one, and starts it at another parallelism: what barriers overtook is
// in flight then.
func (x *trial) killed() {
	_ = checkpoint.SetFailpoint("")
	x.flush()
	for {
		_, err := x.job.Checkpoint(x.ctx)
		if err == nil {
			break
		}
		if x.job.Status().State.Ended() {
			x.fatal(err)
		}
	}
	x.job.Cancel()
	_ = x.job.Wait(x.ctx)
	if _, err := x.eng.Exec(x.ctx, fmt.Sprintf("SET 'parallelism.default' = '%d'", 1+x.r.IntN(4))); err != nil {
		x.t.Fatal(err)
	}
	x.start()
}

// ranks reports Top-N in a query.
func (x *trial) ranks() bool {
	text := x.stmt
	for _, v := range x.views {
		text += v.q.sql()
	}
	return strings.Contains(text, "ROW_NUMBER") || strings.Contains(text, "LIMIT")
}
