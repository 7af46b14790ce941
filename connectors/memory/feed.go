package memory

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/sql/diag"
)

// Feed is a table that the program fills. Its splits are numbered from 0; it starts with one.
type Feed struct {
	name string

	mu        sync.Mutex
	splits    []*feedSplit
	changed   chan struct{} // closed and replaced at every change
	discovery int64
	limit     int
}

// feedSplit holds the rows from number base on. Rows before are covered by a durable checkpoint.
type feedSplit struct {
	base   int64
	rows   []Row
	read   int64 // highest row number handed to a job
	opened bool
	start  int64 // where the newest reader started
	closed bool
	fail   map[int64]error // failures to return once, before the row of that number
	hold   int64           // row number before which reading pauses, -1 = none
}

func newFeed(name string) *Feed {
	f := &Feed{name: name, changed: make(chan struct{})}
	f.splits = []*feedSplit{newFeedSplit()}
	return f
}

func newFeedSplit() *feedSplit { return &feedSplit{hold: -1, fail: map[int64]error{}} }

// signal wakes readers and senders. f.mu is held.
func (f *Feed) signal() {
	close(f.changed)
	f.changed = make(chan struct{})
}

// SetSplits makes the feed have at least n splits. Done before a job reads it, they all start at the job's start; later,
// they are discovered if SetDiscovery allows it.
func (f *Feed) SetSplits(n int) *Feed {
	f.mu.Lock()
	defer f.mu.Unlock()
	for len(f.splits) < n {
		f.splits = append(f.splits, newFeedSplit())
	}
	f.signal()
	return f
}

// SetDiscovery makes jobs look for new splits every ms milliseconds; 0 (the default) never.
func (f *Feed) SetDiscovery(ms int64) *Feed {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.discovery = ms
	return f
}

// SetLimit makes Send wait while a split has n rows that no job has read; 0 (the default) never.
func (f *Feed) SetLimit(n int) *Feed {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.limit = n
	return f
}

// Append adds rows to a split. The values must not be changed afterwards.
func (f *Feed) Append(split int, rows ...Row) {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := f.splits[split]
	s.rows = append(s.rows, rows...)
	f.signal()
}

// Send adds a row to a split, waiting while the job is far behind; see SetLimit.
func (f *Feed) Send(ctx context.Context, split int, row Row) error {
	for {
		f.mu.Lock()
		s := f.splits[split]
		if f.limit <= 0 || s.base+int64(len(s.rows))-s.read < int64(f.limit) {
			s.rows = append(s.rows, row)
			f.signal()
			f.mu.Unlock()
			return nil
		}
		changed := f.changed
		f.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Close ends every split after the rows it has: a job that reads the feed as bounded table ends.
func (f *Feed) Close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, s := range f.splits {
		s.closed = true
	}
	f.signal()
}

// Start waits until a job reads the split and returns the number of the first row it needs: 0 for a new job, else what
// its restored checkpoint covers. A program that starts again after a crash continues its data there.
func (f *Feed) Start(ctx context.Context, split int) (int64, error) {
	for {
		f.mu.Lock()
		s, changed := f.splits[split], f.changed
		opened, start := s.opened, s.start
		f.mu.Unlock()
		if opened {
			return start, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
}

// Committed is how many rows of the split a durable checkpoint covers: they are not needed any more.
func (f *Feed) Committed(split int) int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.splits[split].base
}

// Fail makes the reader fail once with err before row number at of the split.
func (f *Feed) Fail(split int, at int64, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.splits[split].fail[at] = err
}

// Failed waits until readers have returned all errors that Fail set for the split.
func (f *Feed) Failed(ctx context.Context, split int) error {
	for {
		f.mu.Lock()
		pending, changed := len(f.splits[split].fail), f.changed
		f.mu.Unlock()
		if pending == 0 {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Hold pauses reading of the split before row number at; -1 lets it go on.
func (f *Feed) Hold(split int, at int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.splits[split].hold = at
	f.signal()
}

// splitName is the name of split i.
func (f *Feed) splitName(i int) checkpoint.Split {
	return checkpoint.Split(f.name + "-" + strconv.Itoa(i))
}

// maxSplits bounds what a name from a checkpoint can make.
const maxSplits = 1 << 16

func (f *Feed) splitIndex(s checkpoint.Split) (int, error) {
	text, ok := strings.CutPrefix(string(s), f.name+"-")
	i, err := strconv.Atoi(text)
	if !ok || err != nil || i < 0 || i >= maxSplits || s != f.splitName(i) {
		return 0, diag.New(diag.Internal, diag.Pos{}, "%q is no split of feed %q", s, f.name)
	}
	return i, nil
}

// open starts a reader of split i at row number at, nil = from what is there.
func (f *Feed) open(i int, at *int64) (int64, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for len(f.splits) <= i {
		f.splits = append(f.splits, newFeedSplit()) // the program has not made it yet in this process
	}
	s := f.splits[i]
	start := s.base
	if at != nil {
		start = *at
	}
	switch {
	case start < s.base:
		return 0, fmt.Errorf("feed %q, split %d: row %d is needed again, rows before %d were dropped after a later checkpoint",
			f.name, i, start, s.base)
	case start > s.base+int64(len(s.rows)) && len(s.rows) == 0:
		s.base = start // a new process: the program continues there, see Start
	case start > s.base+int64(len(s.rows)):
		return 0, fmt.Errorf("feed %q, split %d: the checkpoint covers %d rows, the program fed %d before the job started",
			f.name, i, start, s.base+int64(len(s.rows)))
	}
	s.opened, s.start, s.read = true, start, start
	f.signal()
	return start, nil
}

// drop forgets rows before number n of split i.
func (f *Feed) drop(i int, n int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := f.splits[i]
	if k := n - s.base; k > 0 && k <= int64(len(s.rows)) {
		s.rows = append([]Row(nil), s.rows[k:]...)
		s.base = n
	}
}
