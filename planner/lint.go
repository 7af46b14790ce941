package planner

import (
	"fmt"
	"slices"
	"strings"

	"github.com/streamsql/streamsql/connectors"
	"github.com/streamsql/streamsql/sql/diag"
	"github.com/streamsql/streamsql/sql/expr"
	"github.com/streamsql/streamsql/sql/lint"
)

// stormBelow is the interval below which checkpoints without a pause are worth a warning.
const stormBelow = 1000 // ms

// Lint finds what works but is hardly meant, and what cannot work, in the statement's plan: errors first. Nothing is
// contacted. The places are those of the statement at hand.
func (plan *Plan) Lint() []lint.Finding {
	l := &linter{plan: plan}
	for _, r := range plan.roots {
		l.sink(r)
		l.sources(r)
	}
	l.job()
	slices.SortStableFunc(l.out, func(a, b lint.Finding) int { return int(a.Severity()) - int(b.Severity()) })
	return l.out
}

// Refused is the first finding that keeps the job from starting, as an error; nil when there is none.
func (plan *Plan) Refused() error {
	for _, f := range plan.Lint() {
		if f.Severity() == lint.Error {
			return f.Error()
		}
	}
	return nil
}

// Claims are what the job claims for itself outside, by the table it writes.
func (plan *Plan) Claims() map[string][]connectors.Claim {
	out := map[string][]connectors.Claim{}
	for _, r := range plan.roots {
		if t := r.op.(*Sink).Target; t.Connector.Claims != nil {
			out[t.Table.Name] = t.Connector.Claims(t.Table, t.Delivery)
		}
	}
	return out
}

type linter struct {
	plan *Plan
	out  []lint.Finding
}

// add records a finding once.
func (l *linter) add(f lint.Finding, pos diag.Pos) {
	if !f.Pos.Known() {
		f.Pos = pos
	}
	if !slices.ContainsFunc(l.out, func(x lint.Finding) bool { return x.Code == f.Code && x.Message == f.Message }) {
		l.out = append(l.out, f)
	}
}

// job is what connectors are told about the job that is planned.
func (plan *Plan) jobInfo() connectors.JobInfo {
	c := plan.conf.JobOptions().Checkpoints
	return connectors.JobInfo{Name: plan.Name, CheckpointInterval: c.Interval.Milliseconds(), CheckpointTimeout: c.Timeout.Milliseconds(),
		MinPause: c.MinPause.Milliseconds(), MaxConcurrentCheckpoints: c.MaxConcurrent, MaxDowntime: c.MaxDowntime.Milliseconds()}
}

func (plan *Plan) atLeastOnce() bool { return plan.conf.Enum(keyMode) == "AT_LEAST_ONCE" }

// sink finds what is about one table written.
func (l *linter) sink(root *phys) {
	t := root.op.(*Sink).Target
	if t.Collect {
		return
	}
	pos, name := t.Pos.Pos, t.Table.Name
	if t.Connector.Lint != nil {
		for _, f := range t.Connector.Lint(connectors.LintSpec{Table: t.Table, Use: connectors.UseSink, Mode: t.Delivery, Parallel: root.par, Job: l.plan.jobInfo()}) {
			if t.Followed && f.Option == keyDelivery {
				continue // the user has not written it; said below
			}
			l.add(f, optionPos(t.Table, f.Option, pos))
		}
	}
	twoPhase := t.Delivery.Delivery == connectors.TwoPhaseCommit
	if t.Followed {
		l.add(lint.Finding{Code: "SSQL-W106", Setting: keyMode, Table: name, Message: modeNotice(name),
			Detail: "the table does not say how it is to be delivered, so that the job's mode counts: rows are written without transactions, and those since the last checkpoint again after a failure",
			Hint:   "RESET '" + keyMode + "'; or say '" + keyDelivery + "' = 'at-least-once' in " + name}, pos)
	}
	if twoPhase && l.plan.atLeastOnce() {
		f := lint.Finding{Code: "SSQL-W106", Setting: keyMode, Table: name, Message: modeNotice(name),
			Detail: "barriers are not aligned: a checkpoint can hold rows behind its barrier, which are read again after a failure and committed twice",
			Hint:   "RESET '" + keyMode + "'"}
		if v, ok := t.Table.Options.Get("sink.delivery-guarantee"); ok && strings.EqualFold(v, "exactly-once") {
			f.Code, f.Message = "SSQL-E105", "table "+name+" asks for exactly-once, and the job is at least once ('"+keyMode+"' = AT_LEAST_ONCE)"
			f.Hint += "; or remove 'sink.delivery-guarantee' from " + name
		}
		l.add(f, pos)
	}
	if twoPhase && !l.plan.Bounded && l.plan.conf.Duration(keyInterval) == 0 {
		l.add(lint.Finding{Code: "SSQL-W107", Setting: keyInterval, Table: name, Message: offNotice(name),
			Detail: "a crash starts from the beginning, and a transaction that is open all the time is ended by its timeout",
			Hint:   "SET '" + keyInterval + "' = '10 s'"}, pos)
	}
	if twoPhase && l.plan.degrades() {
		l.add(lint.Finding{Code: "SSQL-W108", Setting: keyOnDegraded, Table: name,
			Message: degradedNotice(name),
			Detail:  "'" + keyOnDegraded + "' = at-least-once: a restore that cannot be exact goes back to where nothing is lost, and output that is visible is written again; it is put on record",
			Hint:    "RESET '" + keyOnDegraded + "', so that such a restore stops and lists what cannot be proven"}, pos)
	}
	l.cumulative(root, t)
	l.readsBack(root, t)
	if c := volatileKey(l.plan.conf, root); c != nil {
		l.add(lint.Finding{Code: "SSQL-W503", Table: name, Pos: c.Pos,
			Message: fmt.Sprintf("the primary key of table %s is made of %s, which gives another value when a row is computed again", name, c),
			Detail:  "after a failure the rows since the last checkpoint are written under new keys, beside those written before",
			Hint:    "make the key of columns of the row, such as its id, or topic, partition and offset as metadata columns"}, pos)
	}
}

func modeNotice(table string) string {
	return "'" + keyMode + "' = AT_LEAST_ONCE: rows of " + table + " can repeat after a failure"
}

// degrades reports that a restore may write rows again where it cannot be exact.
func (plan *Plan) degrades() bool { return plan.conf.Enum(keyOnDegraded) == "at-least-once" }

func degradedNotice(table string) string {
	return "rows of " + table + " can repeat after a failure that cannot be repaired exactly"
}

func offNotice(table string) string {
	return "checkpoints are off ('" + keyInterval + "' = 0): rows of " + table + " become visible only when the job stops"
}

// cumulative: state that counts rows twice, behind a table by key.
func (l *linter) cumulative(root *phys, t *sinkTarget) {
	if !l.plan.atLeastOnce() || t.Delivery.Delivery != connectors.IdempotentUpsert {
		return
	}
	for _, p := range treeOf(root) {
		if _, ok := p.op.(*Aggregate); !ok {
			continue
		}
		l.add(lint.Finding{Code: "SSQL-W502", Setting: keyMode, Table: t.Table.Name,
			Message: fmt.Sprintf("values of table %s that add up (%s) can be too high after a failure, for ever", t.Table.Name, p.op.label()),
			Detail:  "'" + keyMode + "' = AT_LEAST_ONCE: rows that are read again are in the state already; writing by primary key does not help, as the values differ",
			Hint:    "RESET '" + keyMode + "'; or write rows keyed by what happened, and add up where they are read"}, t.Pos.Pos)
		return
	}
}

// readsBack: a column computed from what the same table held before.
func (l *linter) readsBack(root *phys, t *sinkTarget) {
	again, why := "which a replay adds again", "rows take effect at once; after a failure a row is processed again, finds its own effect in the table, and adds to it once more"
	if t.Delivery.Delivery == connectors.TwoPhaseCommit {
		again, why = "of which only the last of a checkpoint counts", "rows take effect with their checkpoint: those of one checkpoint that have a key find the same row in the table, add to that, and the last one is written"
	}
	for i := range root.fields {
		if j := readBack(root, i, t, false); j != nil {
			l.add(lint.Finding{Code: "SSQL-E501", Table: t.Table.Name, Pos: j.Pos,
				Message: fmt.Sprintf("column %s of table %s is computed from the row that %s holds: an increment, %s", root.fields[i].Name, t.Table.Name, t.Table.Name, again),
				Detail:  why,
				Hint:    "let the engine keep the value: SELECT key, SUM(...) ... GROUP BY key, whose state goes back with the checkpoint"}, t.Pos.Pos)
			return
		}
	}
}

// readBack is the lookup join by which column c of p's output is computed from a row of table t; computed says that it was
// changed on the way: a copy of the old value writes what is there.
func readBack(p *phys, c int, t *sinkTarget, computed bool) *LookupJoin {
	switch n := p.op.(type) {
	case *Calc:
		e := n.Exprs[c]
		if _, copied := e.(*expr.Column); !copied {
			computed = true
		}
		for _, from := range expr.ColumnsOf(e) {
			if j := readBack(p.in[0], from, t, computed); j != nil {
				return j
			}
		}
	case *LookupJoin:
		left := len(p.in[0].fields)
		if c < left {
			return readBack(p.in[0], c, t, computed)
		}
		key := slices.ContainsFunc(n.Keys, func(k lookupKey) bool { return k.Col == c-left })
		if computed && !key && sameTable(n.Info, t) {
			return n
		}
	case *constraint, *materialize, *Sink, *dropBefore:
		return readBack(p.in[0], c, t, computed)
	}
	return nil
}

// sameTable reports that both names mean one table outside.
func sameTable(info *tableInfo, t *sinkTarget) bool {
	if info.Table.Name == t.Table.Name {
		return true
	}
	if info.Connector.Name != t.Connector.Name {
		return false
	}
	same := 0
	for _, k := range []string{"url", "table-name", "topic", "properties.bootstrap.servers", "path", "name"} {
		a, has := info.Table.Options.Get(k)
		b, also := t.Table.Options.Get(k)
		if has != also || a != b {
			return false
		}
		if has {
			same++
		}
	}
	return same > 0
}

// volatileKey is the call that makes a key column of an upserted table, over rows that are not found again by it; nil for none.
func volatileKey(conf *Config, root *phys) *expr.Call {
	t := root.op.(*Sink).Target
	if t.Delivery.Delivery != connectors.IdempotentUpsert {
		return nil
	}
	for _, c := range sinkKey(t, t.Delivery) {
		if call := volatileSource(conf, root, c); call != nil {
			return call
		}
	}
	return nil
}

// volatileSource is the call that column c of p's output is computed by, where that is anew for every row.
func volatileSource(conf *Config, p *phys, c int) *expr.Call {
	switch n := p.op.(type) {
	case *Calc:
		if call := volatileIn(conf, n.Exprs[c]); call != nil {
			return call
		}
		for _, from := range expr.ColumnsOf(n.Exprs[c]) {
			if call := volatileSource(conf, p.in[0], from); call != nil {
				return call
			}
		}
	case *Scan:
		if c >= len(n.Cols) {
			return nil
		}
		if call := volatileIn(conf, n.Info.Computed[n.Cols[c]]); call != nil {
			here := *call
			here.Pos = n.Info.Pos // it stands in the table's text
			return &here
		}
	case *constraint, *Sink, *dropBefore:
		return volatileSource(conf, p.in[0], c)
	}
	return nil
}

// treeOf is p and what it reads, each once, inputs first.
func treeOf(p *phys) []*phys {
	var out []*phys
	seen := map[*phys]bool{}
	var walk func(p *phys)
	walk = func(p *phys) {
		if seen[p] {
			return
		}
		seen[p] = true
		for _, in := range p.in {
			walk(in)
		}
		out = append(out, p)
	}
	walk(p)
	return out
}

// sources finds what is about the tables read.
func (l *linter) sources(root *phys) {
	for _, p := range treeOf(root) {
		switch n := p.op.(type) {
		case *Scan:
			l.table(n.Info, connectors.UseSource, p.par)
		case *LookupJoin:
			l.table(n.Info, connectors.UseLookup, p.par)
		}
	}
}

func (l *linter) table(info *tableInfo, use connectors.Use, par int) {
	if info.Connector == nil || info.Connector.Lint == nil {
		return
	}
	for _, f := range info.Connector.Lint(connectors.LintSpec{Table: info.Table, Use: use, Parallel: par, Job: l.plan.jobInfo()}) {
		l.add(f, optionPos(info.Table, f.Option, info.Pos))
	}
}

// job finds what is about the settings, and the tables together.
func (l *linter) job() {
	if len(l.plan.roots) == 0 || l.plan.Schema != nil {
		return
	}
	pos := l.plan.roots[0].op.(*Sink).Target.Pos.Pos
	j := l.plan.jobInfo()
	if j.CheckpointInterval > 0 && j.CheckpointInterval < stormBelow && j.MinPause == 0 && !l.plan.Bounded {
		l.add(lint.Finding{Code: "SSQL-W301", Setting: keyInterval,
			Message: fmt.Sprintf("checkpoints every %s without a pause can follow each other at once", millis(j.CheckpointInterval)),
			Detail:  "'" + keyMinPause + "' is 0: a checkpoint that takes as long as the interval is followed by the next when it ends",
			Hint:    fmt.Sprintf("SET '%s' = '%s'", keyMinPause, millis(max(j.CheckpointInterval/2, 1)))}, pos)
	}
	l.retention(j, pos)
	l.mixed(pos)
}

// replayWindow is how old rows can be that are read again after a failure, in milliseconds.
func replayWindow(j connectors.JobInfo) int64 {
	return j.CheckpointInterval + j.CheckpointTimeout + j.MaxDowntime
}

// retention: state that is dropped sooner than rows can come again.
func (l *linter) retention(j connectors.JobInfo, pos diag.Pos) {
	ttl, window := l.plan.conf.StateTTL().Milliseconds(), replayWindow(j)
	if ttl == 0 || ttl >= window || l.plan.Bounded {
		return
	}
	why := fmt.Sprintf("'%s' is %s; rows as old as checkpoint interval %s + checkpoint timeout %s + downtime %s ('%s') = %s can be read again",
		keyStateTTL, millis(ttl), millis(j.CheckpointInterval), millis(j.CheckpointTimeout), millis(j.MaxDowntime), keyMaxDowntime, millis(window))
	hint := fmt.Sprintf("SET '%s' = '%s' or more", keyStateTTL, millis(window))
	for _, root := range l.plan.roots {
		for _, p := range treeOf(root) {
			f := lint.Finding{Code: "SSQL-W302", Setting: keyStateTTL, Detail: why, Hint: hint,
				Message: fmt.Sprintf("state of %s is dropped sooner than rows can be read again", shortLabel(p))}
			if r, ok := p.op.(*Rank); ok {
				if _, _, dedup := r.deduplicates(); dedup {
					f.Code, f.Message = "SSQL-W303", fmt.Sprintf("%s forgets a key after %s: a row that comes again later passes as new", p.op.label(), millis(ttl))
				}
			}
			if g, ok := p.op.(grower); ok && g.grows(0) != "" { // the time-to-live is for state that would grow without
				l.add(f, pos)
			}
		}
	}
}

// mixed: tables of one job with different guarantees.
func (l *linter) mixed(pos diag.Pos) {
	var exact, weaker []string
	for _, s := range l.plan.Sinks {
		if s.Mode.Delivery == connectors.TwoPhaseCommit {
			exact = append(exact, s.Table)
		} else {
			weaker = append(weaker, fmt.Sprintf("%s (%s)", s.Table, s.Mode.Delivery))
		}
	}
	if len(exact) == 0 || len(weaker) == 0 || l.plan.atLeastOnce() {
		return
	}
	l.add(lint.Finding{Code: "SSQL-W102",
		Message: fmt.Sprintf("the job writes %s exactly once, but not %s", strings.Join(exact, ", "), strings.Join(weaker, ", ")),
		Detail:  "a transaction covers the tables that take part in it: after a failure the others have rows again, or older ones for a moment, and the tables disagree",
		Hint:    "give all tables of the job the same guarantee, or let a second job read the table that is written exactly once"}, pos)
}
