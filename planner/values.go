package planner

import (
	"context"
	"encoding/binary"

	"github.com/streamsql/streamsql/catalog"
	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/connectors"
	"github.com/streamsql/streamsql/exec"
	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/diag"
	"github.com/streamsql/streamsql/sql/expr"
)

// valuesSource makes a bounded source of constant rows. Its one split's position is the number of rows sent.
func valuesSource(v *Values, s expr.Session) *exec.SourceNode {
	schema := schemaOf(v.Schema)
	t := &catalog.Table{Name: "VALUES", Temporary: true, Options: catalog.NewOptions()}
	for _, c := range schema.Columns {
		t.Columns = append(t.Columns, catalog.Column{Name: c.Name, Type: c.Type})
	}
	c := &connectors.Connector{Name: "values", Doc: "the rows of a VALUES clause",
		Bounded: func(*catalog.Table) (bool, error) { return true, nil },
		NewSource: func(context.Context, connectors.SourceSpec) (connectors.Source, error) {
			return &valuesTable{rows: v.Rows, session: s}, nil
		}}
	return &exec.SourceNode{Connector: c, Spec: connectors.SourceSpec{Table: t, Columns: upTo(0, schema.Len()), Schema: schema, Session: s}}
}

type valuesTable struct {
	rows    [][]expr.Expr
	session expr.Session
}

const valuesSplit checkpoint.Split = "values"

// Splits implements connectors.Source: all rows are one split.
func (t *valuesTable) Splits(context.Context) ([]checkpoint.Split, error) {
	return []checkpoint.Split{valuesSplit}, nil
}

// Open implements connectors.Source.
func (t *valuesTable) Open(_ context.Context, splits []checkpoint.Position) (connectors.Reader, error) {
	r := &valuesReader{table: t, next: len(t.rows), done: true}
	for _, p := range splits {
		if err := r.Add(context.Background(), p); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// DiscoveryInterval implements connectors.Source.
func (t *valuesTable) DiscoveryInterval() int64 { return 0 }

// Committed implements connectors.Source.
func (t *valuesTable) Committed(context.Context, []checkpoint.Position) {}

// Close implements connectors.Source.
func (t *valuesTable) Close() error { return nil }

type valuesReader struct {
	table *valuesTable
	next  int
	done  bool // the end was reported
}

// Add implements connectors.Reader.
func (r *valuesReader) Add(_ context.Context, p checkpoint.Position) error {
	r.next, r.done = 0, false
	if p.Next != nil {
		n, w := binary.Uvarint(p.Next)
		if w <= 0 || n > uint64(len(r.table.rows)) {
			return diag.New(diag.Internal, diag.Pos{}, "the position of VALUES in the checkpoint is damaged")
		}
		r.next = int(n)
	}
	return nil
}

// Next implements connectors.Reader: up to a batch of rows, each evaluated on its own.
func (r *valuesReader) Next(_ context.Context, out *batch.Builder) (connectors.Progress, error) {
	if r.done {
		return connectors.Progress{}, connectors.ErrEnd
	}
	p := connectors.Progress{Split: valuesSplit}
	one := &batch.Batch{N: 1}
	for ; r.next < len(r.table.rows) && !out.Full(); r.next++ {
		prog, err := expr.Compile(r.table.rows[r.next], r.table.session)
		if err != nil {
			return p, err
		}
		vecs, err := prog.Eval(one)
		if err != nil {
			return p, err
		}
		for i, v := range vecs {
			out.Cols[i].AppendDatum(v.Datum(0))
		}
		out.RowDone()
		p.Records++
	}
	p.Done = r.next == len(r.table.rows)
	r.done = p.Done
	p.Position = binary.AppendUvarint(nil, uint64(r.next))
	p.Lag = int64(len(r.table.rows) - r.next)
	return p, nil
}

// Close implements connectors.Reader.
func (r *valuesReader) Close() error { return nil }
