package exec

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/sql/diag"
)

// simServer is the model of a PostgreSQL server: sessions, prepared transactions, marker rows, the owner row of the sink.
type simServer struct {
	w        *simWorld
	owner    int // attempt that took the sink last; it ended the sessions of earlier ones
	marks    map[string]bool
	prepared map[string]*simPrepared
	gids     []string // of prepared, in order
	rows     []int
	table    map[int]int // of upserts, by key
	open     []simSessionTxn
}

// simPrepared is a prepared transaction: rows and its marker row.
type simPrepared struct {
	rows []int
	mark string
	life int
}

// simSessionTxn is an open transaction: it ends with its session.
type simSessionTxn struct {
	session int
	rows    []int
}

var errSimSession = errors.New("terminating connection due to administrator command")

// take is connectors/postgres's take: it raises the owner row's epoch and ends sessions of earlier incarnations.
func (s *simServer) take(session int) error {
	if s.owner > session {
		return diag.New(diag.Conflict, diag.Pos{}, "a later incarnation owns the sink")
	}
	s.owner = session
	return nil
}

// alive tells whether requests of the session are carried out.
func (s *simServer) alive(session int) bool {
	return s.owner == session || s.w.wrong == "writers are not fenced"
}

// commitPrepared is COMMIT PREPARED; false is 42704.
func (s *simServer) commitPrepared(gid string) bool {
	p := s.prepared[gid]
	if p == nil {
		return false
	}
	s.forget(gid)
	s.rows = append(s.rows, p.rows...)
	s.marks[p.mark] = true
	return true
}

func (s *simServer) forget(gid string) {
	delete(s.prepared, gid)
	s.gids = slices.DeleteFunc(s.gids, func(g string) bool { return g == gid })
}

// simServerTarget is PostgreSQL with the protocol that the configuration names.
type simServerTarget struct{ w *simWorld }

func (t *simServerTarget) visible() []int {
	if t.w.sink != "upsert" {
		return t.w.server.rows
	}
	var out []int
	for k := range simSplits * simKeys {
		if v, ok := t.w.server.table[k]; ok {
			out = append(out, v)
		}
	}
	return out
}

func (t *simServerTarget) leftover() string {
	if n := len(t.w.server.gids); n > 0 && t.w.hangs == 0 {
		return fmt.Sprintf("prepared transaction %s is left", t.w.server.gids[0])
	}
	return ""
}

func (t *simServerTarget) committer(a *simAttempt) checkpoint.Committer {
	return &simServerCommitter{a: a, w: t.w, s: &t.w.server}
}

func (t *simServerTarget) writers(a *simAttempt, n int) (out []simWriter) {
	for i := range n {
		if t.w.sink == "marker" {
			out = append(out, &simKeeper{a: a, subtask: i})
		} else {
			out = append(out, &simServerWriter{a: a, w: t.w, s: &t.w.server, subtask: i})
		}
	}
	return out
}

// simServerWriter writes by a session.
type simServerWriter struct {
	a       *simAttempt
	w       *simWorld
	s       *simServer
	subtask int
	rows    []int
}

func (x *simServerWriter) write(row int) {
	switch x.w.sink {
	case "at-least-once":
		x.s.rows = append(x.s.rows, row)
	case "upsert":
		if x.rows = append(x.rows, row); len(x.rows) > 3 {
			x.flush()
		}
	default:
		x.rows = append(x.rows, row)
		x.must(x.s.alive(x.a.n))
	}
}

func (x *simServerWriter) must(alive bool) {
	if !alive {
		x.a.fail("%v", errSimSession)
	}
}

// flush upserts what is buffered in a transaction of its own.
func (x *simServerWriter) flush() {
	rows := x.rows
	x.rows = nil
	upsert := func() bool {
		if !x.s.alive(x.a.n) {
			return false
		}
		for _, r := range rows {
			x.s.table[rowKey(r/100)] = r
		}
		return true
	}
	x.a.step()
	if x.w.chance(30) { // the connection breaks; what was sent on it may still be carried out, until its session is ended
		x.w.delay(func() { upsert() })
		x.a.fail("connection reset")
	}
	x.must(upsert())
}

func (x *simServerWriter) committed(checkpoint.ID) {}

func (x *simServerWriter) preCommit(id checkpoint.ID) []checkpoint.Committable {
	if x.w.sink == "upsert" && len(x.rows) > 0 {
		x.flush()
	}
	if x.w.sink == "upsert" || x.w.sink == "at-least-once" || len(x.rows) == 0 {
		return nil
	}
	rows := x.rows
	x.rows = nil
	x.must(x.s.alive(x.a.n))
	if x.w.sink == "open" {
		x.s.open = append(x.s.open, simSessionTxn{x.a.n, rows})
		return x.a.committable(id, x.subtask, fmt.Sprint(len(x.s.open)-1))
	}
	gid := fmt.Sprintf("%s:%d:%d:%d", x.a.lineage, id, x.subtask, x.w.life)
	out := x.a.committable(id, x.subtask, gid)
	x.s.prepared[gid] = &simPrepared{rows: rows, mark: x.w.mark(out[0]), life: x.w.life}
	x.s.gids = append(x.s.gids, gid)
	return out
}

// simServerCommitter is connectors/postgres's committer.go and owner.go as a model.
type simServerCommitter struct {
	a     *simAttempt
	w     *simWorld
	s     *simServer
	taken bool
	swept bool
	kept  map[string]bool
}

func (c *simServerCommitter) Close() error { return nil }

// own takes the sink, once.
func (c *simServerCommitter) own() error {
	if c.taken {
		return nil
	}
	c.a.step()
	if err := c.s.take(c.a.n); err != nil {
		return err
	}
	c.taken = true
	c.a.step()
	return nil
}

func (c *simServerCommitter) Classify(ctx context.Context, cs []checkpoint.Committable) (out []checkpoint.Outcome, err error) {
	if err := c.own(); err != nil {
		return nil, err
	}
	for _, p := range cs {
		c.a.step()
		o := checkpoint.OutcomeAborted
		switch m := c.w.mark(p); {
		case c.w.sink == "open":
			o = checkpoint.OutcomeOpen // nobody can say
		case c.s.marks[m]:
			o = checkpoint.OutcomeCommitted
		case c.w.sink == "marker" && (!c.swept || c.kept[m]):
			o = checkpoint.OutcomeOpen
		case c.s.prepared[string(p.Payload)] != nil:
			o = checkpoint.OutcomeOpen
		}
		out = append(out, o)
	}
	return out, nil
}

func (c *simServerCommitter) Commit(ctx context.Context, cs []checkpoint.Committable) error {
	if err := c.own(); err != nil {
		return err
	}
	for _, p := range cs {
		c.a.step()
		var err error
		switch c.w.sink {
		case "marker":
			err = c.apply(p)
		case "prepared":
			err = c.commitPrepared(p)
		case "open":
			var i int
			fmt.Sscan(string(p.Payload), &i)
			if x := &c.s.open[i]; x.session == c.a.n && c.s.alive(c.a.n) {
				c.s.rows = append(c.s.rows, x.rows...)
				x.rows = nil
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// apply writes rows and marker in one transaction that also looks at the owner row.
func (c *simServerCommitter) apply(p checkpoint.Committable) error {
	alive := true
	answered := c.a.request(func() {
		m := c.w.mark(p)
		if alive = c.s.alive(c.a.n); !alive || c.s.marks[m] && c.w.wrong != "commit is not idempotent" {
			return
		}
		c.s.marks[m] = true
		c.s.rows = append(c.s.rows, parseRows(string(p.Payload))...)
	})
	switch {
	case !answered:
		return errors.New("connection reset")
	case !alive:
		return diag.New(diag.Conflict, diag.Pos{}, "%v", errSimSession)
	}
	return nil
}

func (c *simServerCommitter) commitPrepared(p checkpoint.Committable) error {
	found := true
	if !c.a.request(func() { found = c.s.commitPrepared(string(p.Payload)) }) {
		return errors.New("connection reset")
	}
	if found || c.s.marks[c.w.mark(p)] {
		return nil
	}
	return diag.New(diag.Lost, diag.Pos{}, "prepared transaction %q was rolled back by someone else", p.Payload)
}

// Abort rolls back what this lineage prepared, except keep.
func (c *simServerCommitter) Abort(ctx context.Context, keep []checkpoint.Committable) error {
	if err := c.own(); err != nil {
		return err
	}
	kept := map[string]bool{}
	c.swept, c.kept = true, map[string]bool{}
	for _, p := range keep {
		kept[string(p.Payload)], c.kept[c.w.mark(p)] = true, true
	}
	for _, gid := range slices.Clone(c.s.gids) {
		c.a.step()
		if p := c.s.prepared[gid]; p != nil && !kept[gid] && p.life == c.w.life {
			c.s.forget(gid)
		}
	}
	return nil
}
