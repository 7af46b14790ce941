package streamsql

import (
	"context"
	"iter"

	"github.com/streamsql/streamsql/sql/diag"
	"github.com/streamsql/streamsql/sql/expr"
	"github.com/streamsql/streamsql/sql/types"
)

// RowKind is the kind of a change: +I, -U, +U or -D.
type RowKind = types.RowKind

// Change is a row of a result with its kind.
type Change struct {
	Kind RowKind
	Row
}

// Result is what a statement returned.
type Result struct {
	// Statement is the statement's text, Pos where it begins in the script.
	Statement string
	Pos       diag.Pos
	// Message is "OK" for statements without rows.
	Message string
	// Notices are remarks for the user.
	Notices []string
	// Job is the running job of an INSERT, statement set or SELECT.
	Job *Job
	// Schema describes the rows; nil when there are none.
	Schema *types.Schema
	// Mode is the changelog mode of the rows, Bounded whether they end by themselves.
	Mode    types.ChangelogMode
	Bounded bool

	session expr.Session
	rows    iter.Seq2[Change, error]
	fixed   [][]types.Datum
}

// IsQuery reports that the rows come from a running job, not from the catalog or the settings.
func (r *Result) IsQuery() bool { return r.Job != nil && r.Schema != nil }

// Rows streams the rows. A query's rows come as they are produced and can be read once; ending the iteration early
// stops the query. An error is the last element.
func (r *Result) Rows() iter.Seq2[Change, error] {
	if r.rows != nil {
		return r.rows
	}
	return func(yield func(Change, error) bool) {
		for _, d := range r.fixed {
			if !yield(Change{Row: Row{schema: r.Schema, datums: d, session: r.session}}, nil) {
				return
			}
		}
	}
}

// Session is what the rows are rendered with.
func (r *Result) Session() expr.Session { return r.session }

// discard ends a query whose rows nobody will read.
func (r *Result) discard() {
	if r.Job != nil {
		r.Job.Cancel()
		_ = r.Job.Wait(context.Background()) // cancelled on purpose
	}
}

// table is a result of the engine itself: text columns.
func table(names ...string) *Result {
	s := &types.Schema{}
	for _, n := range names {
		s.Columns = append(s.Columns, types.Column{Name: n, Type: types.StringType})
	}
	return &Result{Schema: s}
}

func (r *Result) add(cells ...string) { r.fixed = append(r.fixed, row(cells...)) }
