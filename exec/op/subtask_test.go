package op

import (
	"fmt"
	"log/slog"
	"sort"
	"strings"
	"testing"

	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/exec"
	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/types"
)

// testSubtask runs an operator on the real state backend, outside a job.
type testSubtask struct {
	backend  *checkpoint.Backend
	budget   *checkpoint.MemoryBudget
	peak     int64 // of the budget's use, as seen when a multimap is probed
	restored [][]byte
	counters map[string]*exec.Counter
	now      int64
}

func newSubtask(t testing.TB, budget int64) *testSubtask {
	t.Helper()
	owner := checkpoint.OwnMemory()
	limit := checkpoint.NewMemoryBudget(budget)
	b, err := checkpoint.OpenBackend(owner, "op-0", checkpoint.BackendOptions{Budget: limit})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close(); owner.Close() })
	return &testSubtask{backend: b, budget: limit, counters: map[string]*exec.Counter{}}
}

func (s *testSubtask) ID() checkpoint.SubtaskID { return checkpoint.SubtaskID{Operator: "op"} }
func (s *testSubtask) Parallelism() int         { return 1 }
func (s *testSubtask) Table(o checkpoint.TableOptions) (checkpoint.Table, error) {
	return s.backend.Table("op", o)
}
func (s *testSubtask) Restored() [][]byte    { return s.restored }
func (s *testSubtask) OwnsKeyGroup(int) bool { return true }
func (s *testSubtask) Now() int64 {
	if s.budget != nil {
		s.peak = max(s.peak, s.budget.Used())
	}
	return s.now
}
func (s *testSubtask) Log() *slog.Logger { return slog.New(slog.DiscardHandler) }
func (s *testSubtask) Counter(name string) *exec.Counter {
	if s.counters[name] == nil {
		s.counters[name] = &exec.Counter{}
	}
	return s.counters[name]
}

// collector keeps emitted rows as "kind|col|col…".
type rowCollector struct {
	rows []string
}

func (c *rowCollector) Emit(b *batch.Batch) error {
	for i := range b.Len() {
		r := b.Row(i)
		parts := []string{b.Kind(r).String()}
		for _, v := range b.Cols {
			parts = append(parts, string(types.AppendText(nil, v.Datum(r), v.Type, nil)))
		}
		c.rows = append(c.rows, strings.Join(parts, "|"))
	}
	return nil
}

func (c *rowCollector) take() []string {
	rows := c.rows
	c.rows = nil
	return rows
}

func openOp(t testing.TB, f func() exec.Operator, s exec.Subtask) exec.Operator {
	t.Helper()
	o := f()
	if err := o.Open(s); err != nil {
		t.Fatal(err)
	}
	return o
}

// fold applies a changelog to a multiset of rows and fails on a change that does not fit: a retraction of a row that is
// not there, or an insertion where a -U said an update follows.
func fold(t testing.TB, table map[string]int, log []string) {
	t.Helper()
	for _, c := range log {
		kind, row, _ := strings.Cut(c, "|")
		if kind == "+I" || kind == "+U" {
			table[row]++
			continue
		}
		if table[row] == 0 {
			t.Fatalf("%s retracts a row that is not there; table %v", c, table)
		}
		if table[row]--; table[row] == 0 {
			delete(table, row)
		}
	}
}

func sorted(table map[string]int) []string {
	var out []string
	for r, n := range table {
		out = append(out, fmt.Sprintf("%s x%d", r, n))
	}
	sort.Strings(out)
	return out
}
