package streamsql

import (
	"context"
	"slices"
	"strings"

	"github.com/streamsql/streamsql/planner"
	"github.com/streamsql/streamsql/sql"
	"github.com/streamsql/streamsql/sql/diag"
	"github.com/streamsql/streamsql/sql/lint"
)

// Check parses, binds and plans every statement of a script without contacting anything or starting a job: tables and
// views it creates exist for the statements that follow, in memory only. It returns all notices and the first error.
func (e *Engine) Check(text string) (notices []string, err error) {
	r, err := e.Checker(CheckOptions{}).Check(context.Background(), "", text)
	return append(r.Notices, r.warnings...), err
}

// CheckOptions say how a Checker checks.
type CheckOptions struct {
	// Live asks the systems that tables name, and changes nothing there: what a job asks before its first row.
	Live bool
}

// Checker checks scripts one after the other, as one script that is not run.
type Checker struct {
	e       *Engine
	live    bool
	file    string
	options map[string]map[string]place // by table and option
	tables  map[string]place
	set     map[string]place // settings
	claims  map[string]claimed
	asked   map[string]bool // tables that were asked about
}

// place is where something was written, in one of the scripts.
type place struct {
	file string
	pos  diag.Pos
}

// claimed is who claimed something first.
type claimed struct {
	job, table string
	at         place
}

// CheckReport is what a Checker found in one script.
type CheckReport struct {
	Notices  []string // remarks without a rule
	Findings []CheckFinding
	Asked    []string // with Live: what was asked and answered
	warnings []string // notices that are findings, too
}

// CheckFinding is a finding with the script it stands in.
type CheckFinding struct {
	lint.Finding
	File string // as given to Check
}

// Checker begins to check scripts.
func (e *Engine) Checker(o CheckOptions) *Checker {
	return &Checker{e: e, live: o.Live, options: map[string]map[string]place{}, tables: map[string]place{}, set: map[string]place{},
		claims: map[string]claimed{}, asked: map[string]bool{}}
}

// Check checks a script; file is its name, for findings. The report holds what was found before the error, which ends the
// check: what follows may depend on the statement.
func (c *Checker) Check(ctx context.Context, file, text string) (*CheckReport, error) {
	c.file = file
	r := &CheckReport{}
	s := sql.NewScript(text)
	for {
		st, err := s.Next()
		if st == nil || err != nil {
			return r, suggestTable(err)
		}
		if err := c.statement(ctx, st, r); err != nil {
			return r, suggestTable(diag.At(err, st.Pos))
		}
	}
}

func (c *Checker) statement(ctx context.Context, st *sql.Statement, r *CheckReport) error {
	stmt := st.Stmt
	if x, ok := stmt.(*sql.Explain); ok {
		if err := planner.CheckExplain(x); err != nil {
			return err
		}
		stmt = x.Stmt
	}
	switch x := stmt.(type) {
	case *sql.QueryStmt, *sql.Insert, *sql.StatementSet:
		if set, ok := x.(*sql.StatementSet); ok && len(set.Inserts) == 0 {
			return nil
		}
		return c.plan(ctx, stmt, st.Pos, r)
	case *sql.StopJob:
		return nil
	}
	c.note(st.Stmt)
	res, err := c.e.execute(ctx, st)
	if err != nil {
		return err
	}
	r.Notices = append(r.Notices, res.Notices...)
	return nil
}

// note keeps where options and settings were written.
func (c *Checker) note(stmt sql.Stmt) {
	switch x := stmt.(type) {
	case *sql.CreateTable:
		at := map[string]place{}
		for _, o := range x.Options {
			at[o.Key] = place{c.file, o.KeyPos}
		}
		name := x.Path.Last()
		c.options[name], c.tables[name] = at, place{c.file, x.Path.Position()}
	case *sql.Set:
		if x.Option != nil {
			c.set[x.Option.Key] = place{c.file, x.Option.KeyPos}
		}
	case *sql.Reset:
		if x.Key == "" {
			clear(c.set)
		}
		delete(c.set, x.Key)
	}
}

func (c *Checker) plan(ctx context.Context, stmt sql.Stmt, pos diag.Pos, r *CheckReport) error {
	plan, err := c.e.planner.Plan(stmt, c.e.conf, planner.Options{Embedded: c.e.embedded})
	if err != nil {
		return err
	}
	findings := plan.Lint()
	for _, n := range append(plan.Notices, pathRemarks(plan)...) {
		// Some notices are findings as well: they are told once.
		if slices.ContainsFunc(findings, func(f lint.Finding) bool { return f.Message == n }) {
			r.warnings = append(r.warnings, n)
			continue
		}
		r.Notices = append(r.Notices, n)
	}
	for _, f := range append(findings, c.rivals(plan, pos)...) {
		c.add(r, f)
	}
	if c.e.embedded == "" {
		if err := haveServers(plan); err != nil {
			return err
		}
	}
	if c.live {
		c.ask(ctx, plan, r)
	}
	return nil
}

// add records a finding at the best place there is: where the option or the setting stands, else where the table is used.
func (c *Checker) add(r *CheckReport, f lint.Finding) {
	out := CheckFinding{f, c.file}
	at, ok := c.options[f.Table][f.Option]
	switch {
	case f.Option == "":
		at, ok = c.set[f.Setting]
	case !ok:
		at, ok = c.tables[f.Table]
	}
	if ok && at.pos.Known() {
		out.Pos, out.File = at.pos, at.file
	}
	if !slices.ContainsFunc(r.Findings, func(x CheckFinding) bool { return x.Code == out.Code && x.Message == out.Message && x.Pos == out.Pos }) {
		r.Findings = append(r.Findings, out)
	}
}

// rivals finds claims that an earlier job of the scripts has: both would run at once.
func (c *Checker) rivals(plan *planner.Plan, pos diag.Pos) (out []lint.Finding) {
	for table, claims := range plan.Claims() {
		for _, x := range claims {
			first, ok := c.claims[x.Key]
			switch {
			case !ok:
				c.claims[x.Key] = claimed{plan.Name, table, place{c.file, pos}}
			case first.at != place{c.file, pos}:
				where := first.at.pos.String()
				if first.at.file != "" {
					where = first.at.file + ":" + where
				}
				out = append(out, lint.Finding{Code: "SSQL-E406", Table: table, Pos: pos,
					Message: "table " + table + ": " + x.What + " is used by another job of the script, too",
					Detail:  "job " + first.job + " (" + where + ") writes " + first.table + " under it, and each would abort the other's transactions",
					Hint:    "remove '" + x.Option + "' (the default is another one for every job), or write both in one statement set"})
			}
		}
	}
	return out
}

// ask asks the systems of a plan's tables what a job would ask before its first row.
func (c *Checker) ask(ctx context.Context, plan *planner.Plan, r *CheckReport) {
	for _, t := range plan.Tables() {
		if c.asked[t.Name+t.Use] {
			continue
		}
		c.asked[t.Name+t.Use] = true
		in, err := t.Inspect(ctx)
		for _, f := range in.Facts {
			r.Asked = append(r.Asked, "table "+t.Name+" ("+t.Use+"): "+f)
		}
		for _, f := range in.Findings {
			f.Pos = t.Pos
			c.add(r, f)
		}
		if err != nil {
			f := lint.FromError(err, "SSQL-E600")
			f.Table, f.Option = t.Name, "connector"
			if strings.HasPrefix(f.Code, "SSQL-E40") || f.Code == "SSQL-E603" {
				f.Option = "properties.transaction.timeout.ms"
			}
			if !f.Pos.Known() {
				f.Pos = t.Pos
			}
			c.add(r, f)
		}
	}
}

// check is one statement checked, for what reads a script without running it.
func (e *Engine) check(st *sql.Statement) ([]string, error) {
	r := &CheckReport{}
	err := e.Checker(CheckOptions{}).statement(context.Background(), st, r)
	return append(r.Notices, r.warnings...), err
}
