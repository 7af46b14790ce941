package op

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/streamsql/streamsql/connectors"
	"github.com/streamsql/streamsql/exec"
	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/diag"
	"github.com/streamsql/streamsql/sql/types"
)

// lookupRequest is a batch of left rows whose keys are looked up together, in one round trip unless keys are cached or
// looked up again.
type lookupRequest struct {
	rows  *batch.Batch
	copy  *batch.Builder // owns rows, when they outlive the call that brought them
	keyOf []int32        // per row that counts: its key, -1 = it is not looked up
	keys  *batch.Builder // the distinct keys
	enc   []byte         // their encodings
	ends  []int32
	found [][][]byte // per key, its rows, encoded
	open  []int32    // keys without rows so far
	sel   []int32    // keys that are asked for
	err   error
	done  chan struct{} // closed when found or err is set; nil when it was done at once
}

// ready reports that the answer is there.
func (r *lookupRequest) ready() bool {
	select {
	case <-r.done:
		return true
	default:
		return r.done == nil
	}
}

// copyOf is a copy of b that the request owns.
func (r *lookupRequest) copyOf(b *batch.Batch) *batch.Batch {
	rows := b.Sel
	if rows == nil {
		for i := range b.N {
			r.open = append(r.open, int32(i))
		}
		rows = r.open
	}
	for c, v := range b.Cols {
		r.copy.Cols[c].AppendRows(v, rows)
	}
	for _, row := range rows {
		r.copy.RowKindDone(b.Kind(int(row)))
	}
	r.open = r.open[:0]
	return r.copy.Finish()
}

func (r *lookupRequest) key(i int32) []byte {
	start := int32(0)
	if i > 0 {
		start = r.ends[i-1]
	}
	return r.enc[start:r.ends[i]]
}

// fetcher answers requests. It is shared by the subtasks of a node and safe for concurrent use.
type fetcher struct {
	spec   *LookupJoinSpec
	lookup connectors.Lookup
	cache  *lookupCache
	keys   *types.Schema
}

// fetch finds the rows of all keys of r. Keys without rows are looked up again where a retry is asked for.
func (f *fetcher) fetch(ctx context.Context, r *lookupRequest) error {
	if t := f.spec.Async.Timeout; f.spec.Async.Capacity > 0 && t > 0 {
		limited, cancel := context.WithTimeoutCause(ctx, t, errLookupTimeout)
		defer cancel()
		err := f.fetchAll(limited, r)
		if err != nil && errors.Is(context.Cause(limited), errLookupTimeout) {
			return diag.New(diag.External, diag.Pos{}, "a lookup in table %s took longer than %s", f.spec.Lookup.Table.Name, t).Wrap(err).
				WithHint("look why the table answers slowly, such as a missing index on its key; or allow more: /*+ LOOKUP('table'='%s', 'async'='true', 'timeout'='10 min') */", f.spec.Lookup.Table.Name)
		}
		return err
	}
	return f.fetchAll(ctx, r)
}

var errLookupTimeout = errors.New("the lookup's time is over")

func (f *fetcher) fetchAll(ctx context.Context, r *lookupRequest) error {
	n := r.keys.Len()
	r.found, r.open = resize(r.found, n), resize(r.open, n)
	clear(r.found)
	open := r.open
	for i := range open {
		open[i] = int32(i)
	}
	for attempt := 0; ; attempt++ {
		if err := f.ask(ctx, r, open); err != nil {
			return err
		}
		missing := open[:0]
		for _, k := range open {
			if len(r.found[k]) == 0 {
				missing = append(missing, k)
			}
		}
		open = missing
		if len(open) == 0 || attempt >= f.spec.Retry.MaxAttempts {
			return nil
		}
		timer := time.NewTimer(f.spec.Retry.Delay)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		}
	}
}

// ask finds the rows of the keys in open: in the cache, the others in one round trip.
func (f *fetcher) ask(ctx context.Context, r *lookupRequest, open []int32) error {
	all := r.keys.Finish()
	keys := *all
	r.sel = slices.Grow(r.sel[:0], max(1, len(open))) // not nil, which would be all
	keys.Sel = r.sel
	for _, k := range open {
		if f.cache != nil {
			if rows, ok := f.cache.get(r.key(k)); ok {
				r.found[k] = rows
				continue
			}
		}
		keys.Sel = append(keys.Sel, k)
	}
	if len(keys.Sel) == 0 {
		return nil
	}
	out := batch.NewBuilder(f.spec.Lookup.Schema)
	of, err := f.lookup.Find(ctx, &keys, out, nil)
	if err != nil {
		return err
	}
	b := out.Finish()
	for i, k := range of {
		row := appendRow(nil, b, i)
		k = keys.Sel[k]
		r.found[k] = append(r.found[k], row)
	}
	if f.cache != nil {
		for _, k := range keys.Sel {
			f.cache.put(r.key(k), r.found[k])
		}
	}
	return nil
}

// appendLookupKey encodes row r of cols; ok is false when a value is NULL, which no row equals.
func appendLookupKey(dst []byte, cols []*batch.Vec, r int) (key []byte, ok bool) {
	for _, v := range cols {
		if v.IsNull(r) {
			return dst, false
		}
		dst = exec.AppendColumn(dst, v, r)
	}
	return dst, true
}
