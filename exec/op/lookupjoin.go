package op

import (
	"bytes"
	"context"
	"errors"
	"sync"
	"time"

	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/connectors"
	"github.com/streamsql/streamsql/exec"
	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/expr"
	"github.com/streamsql/streamsql/sql/types"
)

var errLookupRows = errors.New("the state of rows that a lookup found is damaged")

// LookupJoinSpec describes a join of a stream with a table that is asked, for each row, as it is then.
type LookupJoinSpec struct {
	Left      *types.Schema
	Connector *connectors.Connector
	Lookup    connectors.LookupSpec
	Keys      []expr.Expr // per Lookup.Keys, over the left row, in that column's type
	Ask       expr.Expr   // over the left row: a row for which it is not TRUE has no match and is not looked up; nil = all are
	Outer     bool        // left rows without a match leave with NULLs
	Cond      expr.Expr   // what else must be TRUE, over the output; nil = nothing
	Async     LookupAsync
	Retry     LookupRetry
	// Keep takes left rows back with the rows that their lookup found, which are kept by the left columns KeepBy: an
	// upsert key; nil = all columns.
	Keep    bool
	KeepBy  []int
	TTL     int64 // of what is kept, in ms; 0 = none
	Session expr.Session
	Output  *types.Schema // columns of the left, then of the table
}

// LookupAsync lets requests run beside the stream.
type LookupAsync struct {
	Capacity  int           // requests on the way at most; each has the keys of one batch. 0 = one at a time, the stream waits
	Unordered bool          // rows leave as answers come; only for insert-only input
	Timeout   time.Duration // of one request with its retries, 0 = none
}

// LookupRetry looks keys without a row up again.
type LookupRetry struct {
	MaxAttempts int // times more, 0 = none
	Delay       time.Duration
}

// NewLookupJoin is Flink's lookup join. Rows keep their kinds: a -U is looked up by itself and need not find what its
// insertion found, but with Keep. The keys of a batch are asked for in one round trip. Watermarks and barriers wait for the requests
// before them, so that no answer is part of a checkpoint and none is lost.
func NewLookupJoin(spec LookupJoinSpec) func() exec.Operator {
	shared := &sharedFetcher{spec: &spec}
	return func() exec.Operator { return &lookupJoin{spec: &spec, shared: shared} }
}

// sharedFetcher is the open table and its cache, for all subtasks of a node in one process.
type sharedFetcher struct {
	spec *LookupJoinSpec
	mu   sync.Mutex
	f    *fetcher
	used int
}

func (s *sharedFetcher) open(ctx context.Context, sub exec.Subtask) (*fetcher, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.f == nil {
		spec := s.spec.Lookup
		spec.Requests, spec.Log = max(1, s.spec.Async.Capacity)*sub.Parallelism(), sub.Log()
		var kept connectors.LookupCache
		if c := s.spec.Connector.LookupCache; c != nil {
			var err error
			if kept, err = c(spec.Table); err != nil {
				return nil, err
			}
		}
		l, err := s.spec.Connector.NewLookup(ctx, spec)
		if err != nil {
			return nil, err
		}
		keys := &types.Schema{}
		for _, k := range spec.Keys {
			keys.Columns = append(keys.Columns, spec.Schema.Columns[k])
		}
		s.f = &fetcher{spec: s.spec, lookup: l, cache: newLookupCache(kept, sub.Now), keys: keys}
	}
	s.used++
	return s.f, nil
}

func (s *sharedFetcher) close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.used--; s.used > 0 {
		return nil
	}
	l := s.f.lookup
	s.f = nil
	return l.Close()
}

type lookupJoin struct {
	spec   *LookupJoinSpec
	shared *sharedFetcher
	f      *fetcher
	keys   *expr.Program
	ask    *expr.Filter
	pairs  *leftPairs
	kept   *keptLookups // nil without Keep

	ctx     context.Context
	cancel  context.CancelFunc
	wake    func()
	running sync.WaitGroup
	queue   []*lookupRequest // on the way, oldest first
	any     chan struct{}    // has a token after a request of the queue was answered
	free    []*lookupRequest

	slots  []int32 // hash table of a batch's keys: key + 1
	hashes []uint64
	asked  []bool

	rows    []int32  // physical rows of the batch being answered, one for each row to leave
	matches [][]byte // and what stands beside them, encoded
	decoder keyColumns
	nothing []byte // the encoding of NULLs only
}

// Open implements exec.Operator.
func (j *lookupJoin) Open(s exec.Subtask) (err error) {
	sp := j.spec
	if j.keys, err = expr.Compile(sp.Keys, sp.Session); err != nil {
		return err
	}
	if sp.Ask != nil {
		if j.ask, err = expr.CompileFilter(sp.Ask, sp.Session); err != nil {
			return err
		}
	}
	if j.pairs, err = newLeftPairs(len(sp.Left.Columns), sp.Outer, sp.Output, sp.Cond, sp.Session); err != nil {
		return err
	}
	if sp.Keep {
		if j.kept, err = openKeptLookups(s, sp); err != nil {
			return err
		}
	}
	j.nothing = make([]byte, len(sp.Output.Columns)-len(sp.Left.Columns))
	j.any, j.wake = make(chan struct{}, 1), exec.WakeFunc(s)
	j.ctx, j.cancel = context.WithCancel(exec.ContextOf(s))
	j.f, err = j.shared.open(j.ctx, s)
	return err
}

// Close implements exec.Operator.
func (j *lookupJoin) Close() error {
	if j.cancel != nil {
		j.cancel()
	}
	j.running.Wait()
	if j.f == nil {
		return nil
	}
	j.f = nil
	return j.shared.close()
}

// Process implements exec.Operator.
func (j *lookupJoin) Process(_ int, b *batch.Batch, out exec.Emitter) error {
	if b.Len() == 0 {
		return nil
	}
	async := j.spec.Async.Capacity > 0
	r, err := j.request(b, async)
	if err != nil {
		return err
	}
	if !async {
		if err := j.f.fetch(j.ctx, r); err != nil {
			return err
		}
		return j.answer(r, out)
	}
	for len(j.queue) >= j.spec.Async.Capacity {
		if err := j.emitReady(out, true); err != nil {
			return err
		}
	}
	r.done = make(chan struct{})
	j.queue = append(j.queue, r)
	j.running.Add(1)
	go j.run(r)
	return j.emitReady(out, false)
}

// run answers r beside the stream.
func (j *lookupJoin) run(r *lookupRequest) {
	defer j.running.Done()
	r.err = j.f.fetch(j.ctx, r)
	close(r.done)
	select {
	case j.any <- struct{}{}:
	default:
	}
	j.wake()
}

// request makes the request of a batch: its rows, copied if they must be kept, and the distinct keys among them.
func (j *lookupJoin) request(b *batch.Batch, keep bool) (*lookupRequest, error) {
	cols, err := j.keys.Eval(b)
	if err != nil {
		return nil, err
	}
	r := j.spare()
	if err := j.askFor(b); err != nil {
		return nil, err
	}
	size := 16
	for size < 2*b.Len() {
		size *= 2
	}
	j.slots, j.hashes = resize(j.slots, size), j.hashes[:0]
	clear(j.slots)
	for i, n := 0, b.Len(); i < n; i++ {
		row := b.Row(i)
		k := int32(-1)
		if j.asked[row] && !(j.kept != nil && b.Kind(row).IsRetract()) {
			k = j.addKey(r, cols, row)
		}
		r.keyOf = append(r.keyOf, k)
	}
	r.rows = b
	if keep {
		r.rows = r.copyOf(b)
	}
	return r, nil
}

// addKey is the place of the key of a row among those of r, which it may be new to; -1 when it has none.
func (j *lookupJoin) addKey(r *lookupRequest, cols []*batch.Vec, row int) int32 {
	start, ok := len(r.enc), false
	if r.enc, ok = appendLookupKey(r.enc, cols, row); !ok {
		r.enc = r.enc[:start]
		return -1
	}
	key, mask := r.enc[start:], len(j.slots)-1
	h := checkpoint.HashKey(key)
	p := int(h) & mask
	for ; j.slots[p] != 0; p = (p + 1) & mask {
		if k := j.slots[p] - 1; j.hashes[k] == h && bytes.Equal(r.key(k), key) {
			r.enc = r.enc[:start]
			return k
		}
	}
	k := int32(len(r.ends))
	j.slots[p] = k + 1
	j.hashes, r.ends = append(j.hashes, h), append(r.ends, int32(len(r.enc)))
	for c, v := range cols {
		r.keys.Cols[c].AppendFrom(v, row)
	}
	r.keys.RowDone()
	return k
}

// askFor finds the rows to look up: j.asked by physical row.
func (j *lookupJoin) askFor(b *batch.Batch) error {
	j.asked = resize(j.asked, b.N)
	if j.ask == nil {
		for i := range j.asked {
			j.asked[i] = true
		}
		return nil
	}
	clear(j.asked)
	kept, err := j.ask.Apply(b)
	if err != nil {
		return err
	}
	for i, n := 0, kept.Len(); i < n; i++ {
		j.asked[kept.Row(i)] = true
	}
	return nil
}

// spare is an empty request, one used before if there is one.
func (j *lookupJoin) spare() *lookupRequest {
	if n := len(j.free); n > 0 {
		r := j.free[n-1]
		j.free = j.free[:n-1]
		r.copy.Reset()
		r.keys.Reset()
		clear(r.found)
		*r = lookupRequest{copy: r.copy, keyOf: r.keyOf[:0], keys: r.keys, enc: r.enc[:0], ends: r.ends[:0],
			found: r.found[:0], open: r.open[:0], sel: r.sel[:0]}
		return r
	}
	return &lookupRequest{copy: batch.NewBuilder(j.spec.Left), keys: batch.NewBuilder(j.f.keys)}
}

// answer emits the output of a request that is done.
func (j *lookupJoin) answer(r *lookupRequest, out exec.Emitter) error {
	if r.err != nil {
		return r.err
	}
	b := r.rows
	if j.kept != nil {
		if err := j.kept.begin(b); err != nil {
			return err
		}
	}
	for i, n := 0, b.Len(); i < n; i++ {
		row := b.Row(i)
		kind := b.Kind(row)
		found, err := j.found(r, i, kind)
		if err != nil {
			return err
		}
		for _, match := range found {
			j.rows, j.matches = append(j.rows, int32(row)), append(j.matches, match)
		}
		switch {
		case len(found) > 0:
			j.pairs.group(len(found), false)
		case j.spec.Outer:
			j.rows, j.matches = append(j.rows, int32(row)), append(j.matches, j.nothing)
			j.pairs.group(1, true)
		}
		// An update's two rows stay in one batch where they can.
		if len(j.rows) >= batch.Size-1 && kind != types.UpdateBefore {
			if err := j.emit(b, out); err != nil {
				return err
			}
		}
	}
	if err := j.emit(b, out); err != nil {
		return err
	}
	j.free = append(j.free, r)
	if j.kept != nil {
		return j.kept.rows.done()
	}
	return nil
}

// emit emits rows of b with what stands beside them.
func (j *lookupJoin) emit(b *batch.Batch, out exec.Emitter) error {
	for i, c := range j.pairs.leftCols() {
		c.AppendRows(b.Cols[i], j.rows)
	}
	if err := j.decoder.decode(j.matches, j.pairs.rightCols()); err != nil {
		return errLookupRows
	}
	for _, r := range j.rows {
		j.pairs.done(b.Kind(int(r)))
	}
	clear(j.matches)
	j.rows, j.matches = j.rows[:0], j.matches[:0]
	return j.pairs.flush(out)
}

// found are the candidates for row i of r: what its lookup found, or with Keep, what that of the row it takes back did.
func (j *lookupJoin) found(r *lookupRequest, i int, kind types.RowKind) (found [][]byte, err error) {
	if j.kept != nil && kind.IsRetract() {
		return j.kept.take(i)
	}
	if k := r.keyOf[i]; k >= 0 {
		found = r.found[k]
	}
	if j.kept != nil {
		err = j.kept.put(i, found)
	}
	return found, err
}

// emitReady emits what is answered: in order up to the first request that is not, or whatever is. With wait, it waits
// for an answer that lets something go.
func (j *lookupJoin) emitReady(out exec.Emitter, wait bool) error {
	if wait {
		if err := j.await(); err != nil {
			return err
		}
	}
	kept := j.queue[:0]
	var failed error
	for i, r := range j.queue {
		if failed != nil || !r.ready() || len(kept) > 0 && !j.spec.Async.Unordered {
			kept = append(kept, j.queue[i])
			continue
		}
		failed = j.answer(r, out)
	}
	clear(j.queue[len(kept):])
	j.queue = kept
	return failed
}

// await blocks until the oldest request is answered, or any when the order does not matter.
func (j *lookupJoin) await() error {
	if !j.spec.Async.Unordered {
		<-j.queue[0].done // its context ends with the job
		return nil
	}
	for {
		for _, r := range j.queue {
			if r.ready() {
				return nil
			}
		}
		<-j.any
	}
}

// drain waits for all requests and emits their rows.
func (j *lookupJoin) drain(out exec.Emitter) error {
	for len(j.queue) > 0 {
		if err := j.emitReady(out, true); err != nil {
			return err
		}
	}
	return nil
}

// OnWake implements exec.Waker.
func (j *lookupJoin) OnWake(out exec.Emitter) error { return j.emitReady(out, false) }

// OnWatermark implements exec.Operator: no watermark overtakes a row.
func (j *lookupJoin) OnWatermark(_ exec.Watermark, out exec.Emitter) error { return j.drain(out) }

// OnBarrier implements exec.Operator: rows before the barrier leave before it.
func (j *lookupJoin) OnBarrier(_ checkpoint.Barrier, out exec.Emitter) ([]byte, error) {
	return nil, j.drain(out)
}
