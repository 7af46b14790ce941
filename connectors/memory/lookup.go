package memory

import (
	"context"
	"log/slog"
	"sync"

	"github.com/streamsql/streamsql/catalog"
	"github.com/streamsql/streamsql/connectors"
	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/types"
)

// Rows is a table that jobs look up and the program changes: its rows as they are now. Safe for concurrent use.
type Rows struct {
	mu       sync.Mutex
	rows     [][]types.Datum
	fail     []error
	held     chan struct{} // closed when lookups may go on, nil when they may
	requests int
	keys     int
}

// Rows is the table called name. It is made, empty, when there is none.
func (b *Bus) Rows(name string) *Rows {
	b.mu.Lock()
	defer b.mu.Unlock()
	r := b.rows[name]
	if r == nil {
		r = &Rows{}
		b.rows[name] = r
	}
	return r
}

// Set replaces all rows. Each has one value per physical column in declared order.
func (r *Rows) Set(rows ...[]types.Datum) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.rows = rows
}

// Fail makes the next lookups fail, one with each error.
func (r *Rows) Fail(errs ...error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.fail = append(r.fail, errs...)
}

// Hold lets lookups that begin from now on wait until the returned function is called.
func (r *Rows) Hold() (release func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	held := make(chan struct{})
	r.held = held
	return sync.OnceFunc(func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.held == held {
			r.held = nil
		}
		close(held)
	})
}

// Requests is how many lookups there were and how many keys they asked for.
func (r *Rows) Requests() (requests, keys int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.requests, r.keys
}

// lookup implements connectors.Lookup.
type lookup struct {
	r       *Rows
	table   string
	retries int
	log     *slog.Logger
	cols    []int // per output column: index into a row
	keys    []int // per key: index into a row
}

func newLookup(r *Rows, retries int, spec connectors.LookupSpec) *lookup {
	physical := map[int]int{}
	for i, c := range spec.Table.Columns {
		if c.Kind == catalog.Physical {
			physical[i] = len(physical)
		}
	}
	l := &lookup{r: r, table: spec.Table.Name, retries: retries, log: spec.Log}
	for _, c := range spec.Columns {
		l.cols = append(l.cols, physical[c])
	}
	for _, k := range spec.Keys {
		l.keys = append(l.keys, l.cols[k])
	}
	return l
}

// Find implements connectors.Lookup. A failure is repeated as 'lookup.max-retries' says.
func (l *lookup) Find(ctx context.Context, keys *batch.Batch, out *batch.Builder, of []int32) ([]int32, error) {
	err := connectors.RetryLookup(ctx, l.table, l.retries, l.log, func(error) bool { return true }, func() (err error) {
		of, err = l.find(ctx, keys, out, of)
		return err
	})
	return of, err
}

func (l *lookup) find(ctx context.Context, keys *batch.Batch, out *batch.Builder, of []int32) ([]int32, error) {
	l.r.mu.Lock()
	l.r.requests++
	l.r.keys += keys.Len()
	held := l.r.held
	l.r.mu.Unlock()
	if held != nil {
		select {
		case <-held:
		case <-ctx.Done():
			return of, ctx.Err()
		}
	}
	l.r.mu.Lock()
	defer l.r.mu.Unlock()
	if len(l.r.fail) > 0 {
		err := l.r.fail[0]
		l.r.fail = l.r.fail[1:]
		return of, err
	}
	for i := range keys.Len() {
		for _, row := range l.r.rows {
			if !l.matches(keys, keys.Row(i), row) {
				continue
			}
			for c, from := range l.cols {
				out.Cols[c].AppendDatum(row[from])
			}
			out.RowDone()
			of = append(of, int32(i))
		}
	}
	return of, nil
}

func (l *lookup) matches(keys *batch.Batch, r int, row []types.Datum) bool {
	for k, c := range l.keys {
		if d := keys.Cols[k].Datum(r); row[c].IsNull || d.I64 != row[c].I64 || d.Hi != row[c].Hi || d.F64 != row[c].F64 ||
			d.Bool != row[c].Bool || d.Str != row[c].Str {
			return false
		}
	}
	return true
}

// Close implements connectors.Lookup.
func (l *lookup) Close() error { return nil }
