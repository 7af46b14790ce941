package streamsql

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/streamsql/streamsql/catalog"
	"github.com/streamsql/streamsql/connectors/kafka"
	"github.com/streamsql/streamsql/planner"
	"github.com/streamsql/streamsql/sql"
	"github.com/streamsql/streamsql/sql/diag"
	"github.com/streamsql/streamsql/sql/types"
)

// Exec executes one statement. Definitions and settings take effect before it returns; an INSERT or statement set
// returns a running Job; a SELECT returns a Result whose Rows stream. Errors are *diag.Error with the place in text.
func (e *Engine) Exec(ctx context.Context, text string) (*Result, error) {
	s := e.Script(text)
	res, err := s.Next(ctx)
	if err == io.EOF {
		return nil, diag.New(diag.Syntax, diag.Pos{}, "there is no statement in the text")
	}
	if err != nil {
		return nil, err
	}
	if s.more() {
		res.discard()
		return nil, diag.New(diag.Syntax, diag.Pos{}, "the text holds more than one statement").WithHint("use Script for several statements")
	}
	return res, nil
}

// Script is a text of several statements, executed one after the other.
type Script struct {
	e      *Engine
	script *sql.Script
	next   *sql.Statement
	err    error
	peeked bool
}

// Script prepares text; nothing is parsed or executed yet.
func (e *Engine) Script(text string) *Script { return &Script{e: e, script: sql.NewScript(text)} }

// Next executes the next statement; io.EOF at the end. After an error the script should not be continued: what follows
// may depend on the failed statement.
func (s *Script) Next(ctx context.Context) (*Result, error) {
	st, err := s.take()
	if err != nil {
		return nil, suggestTable(err)
	}
	if st == nil {
		return nil, io.EOF
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	res, err := s.e.execute(ctx, st)
	if err != nil {
		return nil, suggestTable(diag.At(err, st.Pos))
	}
	res.Statement, res.Pos = st.Text, st.Pos
	return res, nil
}

func (s *Script) take() (*sql.Statement, error) {
	if !s.peeked {
		s.next, s.err = s.script.Next()
	}
	s.peeked = false
	return s.next, s.err
}

func (s *Script) more() bool {
	s.next, s.err = s.script.Next()
	s.peeked = true
	return s.next != nil || s.err != nil
}

// execute runs one parsed statement.
func (e *Engine) execute(ctx context.Context, st *sql.Statement) (*Result, error) {
	leave, err := e.enter()
	if err != nil {
		return nil, err
	}
	switch x := st.Stmt.(type) {
	case *sql.StopJob:
		leave() // Close need not wait for what waits for a job
		return e.stopJob(x)
	case *sql.QueryStmt, *sql.Insert, *sql.StatementSet:
		leave()
		return e.run(ctx, st.Stmt)
	}
	defer leave()
	switch x := st.Stmt.(type) {
	case *sql.CreateTable:
		return e.createTable(x, st.Text)
	case *sql.CreateView:
		if err := e.replace(x.Path, x.Temporary); err != nil {
			return nil, err
		}
		created, err := e.planner.CreateView(x, st.Text, e.conf)
		return done(created, "view", x.Path), err
	case *sql.Drop:
		return &Result{Message: "OK"}, e.planner.Catalog().Drop(x)
	case *sql.Set:
		return e.set(x)
	case *sql.Reset:
		return noticed(e.conf.Reset(x.Key)), nil
	case *sql.Show:
		return e.show(x)
	case *sql.Describe:
		return e.describe(x)
	case *sql.Explain:
		return e.explain(x)
	case *sql.Use:
		return e.use(x)
	}
	return nil, unsupported(st.Stmt)
}

// replace drops what an earlier process left under the name of an object about to be created.
func (e *Engine) replace(p sql.Path, temporary bool) error {
	name, err := catalog.Resolve(p)
	if err != nil || temporary || !e.stale[name] {
		return nil // creating reports a bad name
	}
	delete(e.stale, name)
	o, err := e.planner.Catalog().Lookup(p)
	if err != nil {
		return nil // nothing to replace
	}
	kind := sql.TableObject
	if o.Kind() == "view" {
		kind = sql.ViewObject
	}
	return e.planner.Catalog().Drop(&sql.Drop{Kind: kind, Path: p})
}

func done(created bool, kind string, p sql.Path) *Result {
	if !created {
		return &Result{Message: "OK", Notices: []string{fmt.Sprintf("%s %s exists already and was left as it is", kind, p.Plain())}}
	}
	return &Result{Message: "OK"}
}

func (e *Engine) createTable(x *sql.CreateTable, text string) (*Result, error) {
	if x.As != nil {
		return nil, diag.New(diag.Unsupported, x.Position(), "CREATE TABLE … AS is not supported").
			WithHint("CREATE TABLE with its columns, then INSERT INTO %s SELECT …", x.Path.Plain())
	}
	if err := e.replace(x.Path, x.Temporary); err != nil {
		return nil, err
	}
	created, notices, err := e.planner.CreateTable(x, text, e.conf)
	if err != nil {
		return nil, err
	}
	res := done(created, "table", x.Path)
	res.Notices = append(res.Notices, notices...)
	return res, nil
}

func (e *Engine) set(x *sql.Set) (*Result, error) {
	if x.Option == nil {
		res := table("key", "value")
		for _, s := range e.conf.All() {
			res.add(s.Key, s.Value)
		}
		return res, nil
	}
	notice, err := e.conf.Set(x.Option.Key, x.Option.Value, x.Option.ValuePos)
	if err != nil {
		return nil, err
	}
	return noticed(notice), nil
}

// noticed is the result of a statement that is done, with a remark if there is one.
func noticed(notice string) *Result {
	res := &Result{Message: "OK"}
	if notice != "" {
		res.Notices = []string{notice}
	}
	return res
}

func (e *Engine) use(x *sql.Use) (*Result, error) {
	want, have := catalog.DefaultDatabase, "database"
	if x.Catalog {
		want, have = catalog.DefaultCatalog, "catalog"
	}
	parts := x.Path.Parts()
	if parts[len(parts)-1] != want || len(parts) == 2 && parts[0] != catalog.DefaultCatalog {
		return nil, diag.New(diag.Semantic, x.Path.Position(), "%s %q does not exist", have, x.Path.Plain()).
			WithDetail("streamsql has one catalog, %s, with one database, %s", catalog.DefaultCatalog, catalog.DefaultDatabase).WithHint("write USE %s, or nothing", catalog.DefaultDatabase)
	}
	return &Result{Message: "OK"}, nil
}

func (e *Engine) stopJob(x *sql.StopJob) (*Result, error) {
	j := e.Job(x.ID)
	if j == nil {
		var ids []string
		for _, j := range e.Jobs() {
			ids = append(ids, j.ID())
		}
		err := diag.New(diag.Semantic, x.Position(), "there is no job %q", x.ID)
		if n := diag.Nearest(x.ID, ids); n != "" {
			return nil, err.WithHint("did you mean '%s'?", n)
		}
		return nil, err.WithHint("SHOW JOBS lists them")
	}
	if !x.Savepoint {
		return &Result{Message: "OK"}, j.Stop(context.Background(), StopOptions{})
	}
	path, err := j.SavepointPath("")
	if err == nil {
		err = j.Stop(context.Background(), StopOptions{Drain: x.Drain, Savepoint: path})
	}
	if err != nil {
		return nil, err
	}
	res := table("savepoint path")
	res.add(path)
	return res, nil
}

// run starts the job of a query, INSERT or statement set, unless ctx ends before it is planned.
func (e *Engine) run(ctx context.Context, stmt sql.Stmt) (*Result, error) {
	if set, ok := stmt.(*sql.StatementSet); ok && len(set.Inserts) == 0 {
		return &Result{Message: "OK"}, nil
	}
	conf := e.conf.Clone()
	c := newCollector()
	plan, err := e.planner.Plan(stmt, conf, planner.Options{Collect: c.connector(), Embedded: e.embedded})
	if err == nil && e.embedded == "" {
		err = haveServers(plan)
	}
	if err == nil {
		err = plan.Refused()
	}
	if err == nil {
		err = ctx.Err() // given up while it was planned
	}
	if err != nil {
		return nil, err
	}
	queues := e.beginQueues(plan)
	j, err := e.start(plan, conf)
	if errors.Is(err, errDone) {
		e.endQueues(queues, nil)
		return doneBefore(plan.Name), nil
	}
	if err != nil {
		e.endQueues(queues, err)
		return nil, err
	}
	if len(queues) > 0 {
		go func() {
			<-j.done
			e.endQueues(queues, j.err)
		}()
	}
	res := &Result{Job: j, Notices: plan.Notices, Schema: plan.Schema, Mode: plan.Mode, Bounded: plan.Bounded, session: e.Session()}
	if plan.Schema != nil {
		res.rows = c.rows(j, plan.Schema, res.session, plan.Limit)
	}
	return res, nil
}

func (e *Engine) explain(x *sql.Explain) (*Result, error) {
	if err := planner.CheckExplain(x); err != nil {
		return nil, err
	}
	plan, err := e.planner.Plan(x.Stmt, e.conf, planner.Options{Embedded: e.embedded})
	if err != nil {
		return nil, err
	}
	if plan.OnRecord, err = e.onRecord(plan); err != nil {
		return nil, err
	}
	res := table("result")
	res.add(plan.ExplainAs(x.Details))
	res.Notices = append(plan.Notices, pathRemarks(plan)...)
	return res, nil
}

func unsupported(s sql.Stmt) error {
	words := map[string]string{
		"*sql.CreateFunction": "CREATE FUNCTION", "*sql.CreateDatabase": "CREATE DATABASE", "*sql.AlterTable": "ALTER TABLE",
		"*sql.AlterView": "ALTER VIEW", "*sql.AlterDatabase": "ALTER DATABASE",
	}
	hints := map[string]string{
		"*sql.CreateFunction": "register Go functions through the embedding package (Engine.Register); Java functions run on Flink only",
		"*sql.CreateDatabase": "streamsql has one database, default_database",
		"*sql.AlterTable":     "DROP TABLE and CREATE TABLE again; running jobs keep the definition they were started with",
		"*sql.AlterView":      "DROP VIEW and CREATE VIEW again",
		"*sql.AlterDatabase":  "streamsql has one database, default_database",
	}
	if c, ok := s.(*sql.ClientCommand); ok {
		return diag.New(diag.Unsupported, s.Position(), "%s is a command of the interactive client", strings.ToUpper(c.Word)).
			WithHint("remove it from the script")
	}
	key := fmt.Sprintf("%T", s)
	word := words[key]
	if word == "" {
		word = "this statement"
	}
	return diag.New(diag.Unsupported, s.Position(), "%s is not supported", word).WithHint("%s", hints[key])
}

// haveServers finds the Kafka table of a plan that a process without embedded broker cannot reach.
func haveServers(plan *planner.Plan) error {
	for _, n := range plan.Graph.Nodes {
		var err error
		switch {
		case n.Source != nil:
			err = kafka.CheckServers(n.Source.Spec.Table)
		case n.Sink != nil && n.Sink.Spec.Table != nil:
			err = kafka.CheckServers(n.Sink.Spec.Table)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// CheckSyntax only parses a script; names need not exist.
func CheckSyntax(text string) error {
	s := sql.NewScript(text)
	for {
		st, err := s.Next()
		if st == nil || err != nil {
			return err
		}
	}
}

func row(cells ...string) []types.Datum {
	out := make([]types.Datum, len(cells))
	for i, c := range cells {
		out[i] = types.StrDatum(c)
	}
	return out
}

// Explain plans every query and INSERT of a script and returns the texts EXPLAIN would show; definitions and settings
// take effect for the statements that follow. Nothing is contacted or run.
func (e *Engine) Explain(text string) (plans []string, err error) {
	err = e.eachPlan(text, func(plan *planner.Plan, details []sql.ExplainDetail) {
		text := plan.ExplainAs(details)
		for _, n := range pathRemarks(plan) {
			text += "\nnotice: " + n
		}
		plans = append(plans, text)
	})
	return plans, err
}

// Guarantees plans every query and INSERT of a script, as Explain, and returns what each is worth after a failure: what
// EXPLAIN GUARANTEES shows.
func (e *Engine) Guarantees(text string) (out []*planner.Guarantees, err error) {
	err = e.eachPlan(text, func(plan *planner.Plan, _ []sql.ExplainDetail) { out = append(out, plan.Guarantees()) })
	return out, err
}

// eachPlan gives the plans of a script to do; other statements take effect.
func (e *Engine) eachPlan(text string, do func(*planner.Plan, []sql.ExplainDetail)) error {
	s := sql.NewScript(text)
	for {
		st, err := s.Next()
		if st == nil || err != nil {
			return suggestTable(err)
		}
		inner, details := st.Stmt, []sql.ExplainDetail(nil)
		if x, ok := inner.(*sql.Explain); ok {
			if err := planner.CheckExplain(x); err != nil {
				return suggestTable(err)
			}
			inner, details = x.Stmt, x.Details
		}
		switch inner.(type) {
		case *sql.QueryStmt, *sql.Insert, *sql.StatementSet:
			plan, err := e.planner.Plan(inner, e.conf, planner.Options{Embedded: e.embedded})
			if err != nil {
				return suggestTable(diag.At(err, st.Pos))
			}
			if plan.OnRecord, err = e.onRecord(plan); err != nil {
				return err
			}
			do(plan, details)
		case *sql.StopJob:
		default:
			if _, err := e.execute(context.Background(), st); err != nil {
				return suggestTable(diag.At(err, st.Pos))
			}
		}
	}
}

// Complete reports whether text ends in a semicolon that ends a statement (not one in a string, a comment or a
// statement set): a shell reads lines until it does.
func Complete(text string) bool { return sql.SplitComplete(text) }

// Keywords are the words of the dialect, sorted, for completion.
func Keywords() []string { return sql.Keywords() }
