package memory

import (
	"context"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/sql/diag"
)

// Queue is a table that a job writes and the program reads. It keeps its transactions like an external system would:
// a job that dies leaves them, the next one decides them.
type Queue struct {
	name string

	mu      sync.Mutex
	visible []Row
	total   int64 // rows that ever became visible
	txns    map[string]*txn
	fence   uint64 // writers of earlier fences are refused
	writers uint64 // incarnations of writers so far
	limit   int
	changed chan struct{}
	ended   bool
	open    int // jobs that called Begin and not yet End
	err     error
	faults  map[Op][]error
	onOp    func(Op)
	timeout time.Duration // of transactions, as told
}

// txn is one transaction of a writer.
type txn struct {
	rows    []Row
	outcome checkpoint.Outcome // Open: open or prepared
	ready   bool               // prepared
}

// Op names what a queue can be told to fail at.
type Op string

// The operations.
const (
	OpWrite     Op = "write"
	OpPreCommit Op = "pre-commit"
	OpCommit    Op = "commit"         // before anything is committed
	OpCommitted Op = "commit-applied" // after it is committed: the answer is lost
	OpAbort     Op = "abort"
	OpPreflight Op = "preflight"
)

func newQueue(name string) *Queue {
	return &Queue{name: name, txns: map[string]*txn{}, changed: make(chan struct{}), faults: map[Op][]error{}}
}

func (q *Queue) signal() {
	close(q.changed)
	q.changed = make(chan struct{})
}

// SetLimit makes writers wait while n rows are visible and unread; 0 (the default) never. Only for tables with
// 'delivery' = 'at-least-once': commits do not wait.
func (q *Queue) SetLimit(n int) *Queue {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.limit = n
	return q
}

// Next waits for the next visible row and takes it. After End it returns the rest, then io.EOF or End's error.
func (q *Queue) Next(ctx context.Context) (Row, error) {
	for {
		q.mu.Lock()
		if len(q.visible) > 0 {
			r := q.visible[0]
			q.visible = q.visible[1:]
			if q.limit > 0 {
				q.signal()
			}
			q.mu.Unlock()
			return r, nil
		}
		ended, err, changed := q.ended, q.err, q.changed
		q.mu.Unlock()
		if ended {
			if err == nil {
				err = io.EOF
			}
			return Row{}, err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return Row{}, ctx.Err()
		}
	}
}

// Rows are the visible rows that nobody took.
func (q *Queue) Rows() []Row {
	q.mu.Lock()
	defer q.mu.Unlock()
	return slices.Clone(q.visible)
}

// Wait waits until n rows in all have become visible.
func (q *Queue) Wait(ctx context.Context, n int64) error {
	for {
		q.mu.Lock()
		total, changed := q.total, q.changed
		q.mu.Unlock()
		if total >= n {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Begin announces a job that writes the queue: readers wait for its rows. Rows that nobody took stay.
func (q *Queue) Begin() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.open++
	q.ended, q.err = false, nil
}

// End tells readers that no rows follow: the program calls it when a job ended, with why it failed, if it did. While
// other jobs that called Begin still run, the queue stays open.
func (q *Queue) End(err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.open = max(0, q.open-1)
	q.ended, q.err = q.open == 0, err
	q.signal()
}

// SetTransactionTimeout lets sinks say that their transactions may become so old; nothing is aborted.
func (q *Queue) SetTransactionTimeout(d time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.timeout = d
}

// Fail makes the next operations of kind op fail, with one error each.
func (q *Queue) Fail(op Op, errs ...error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.faults[op] = append(q.faults[op], errs...)
}

// OnOp calls f at the start of every operation, on the caller's goroutine; f may block.
func (q *Queue) OnOp(f func(Op)) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.onOp = f
}

// Expire aborts every transaction that is not decided, as a system does whose timeout passed.
func (q *Queue) Expire() {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, t := range q.txns {
		if t.outcome == checkpoint.OutcomeOpen {
			t.outcome, t.rows = checkpoint.OutcomeAborted, nil
		}
	}
}

// Undecided is how many transactions are open or prepared: 0 when nothing was left behind.
func (q *Queue) Undecided() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := 0
	for _, t := range q.txns {
		if t.outcome == checkpoint.OutcomeOpen {
			n++
		}
	}
	return n
}

// fault is the next error to inject at op.
func (q *Queue) fault(op Op) error {
	q.mu.Lock()
	f := q.onOp
	q.mu.Unlock()
	if f != nil {
		f(op)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	errs := q.faults[op]
	if len(errs) == 0 {
		return nil
	}
	q.faults[op] = errs[1:]
	return errs[0]
}

// show makes rows visible. q.mu is held.
func (q *Queue) show(rows []Row) {
	if len(rows) == 0 {
		return
	}
	q.visible = append(q.visible, rows...)
	q.total += int64(len(rows))
	q.signal()
}

// commit decides a transaction. q.mu is held.
func (q *Queue) commit(id string) error {
	t := q.txns[id]
	switch {
	case t == nil:
		return q.lost(id, "there is no trace of it")
	case t.outcome == checkpoint.OutcomeAborted:
		return q.lost(id, "it was aborted")
	case t.outcome == checkpoint.OutcomeOpen:
		t.outcome = checkpoint.OutcomeCommitted
		q.show(t.rows)
		t.rows = nil
	}
	return nil
}

func (q *Queue) lost(id, why string) error {
	return diag.New(diag.Lost, diag.Pos{}, "queue %q: transaction %s cannot be committed", q.name, id).WithDetail("%s", why).
		WithHint("its rows are lost; start again from a savepoint made before them")
}
