package exec

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

// slowCancel is after how long what does not end is named in the log.
var slowCancel = 30 * time.Second

// enter notes that m's own code runs now; leave takes what enter returned. Members of a chain call each other, so the
// innermost one is the one at work.
func (m *member) enter() (before *member) { return m.task.inside.Swap(m) }

func (m *member) leave(before *member) { m.task.inside.Store(before) }

// unended names what of an attempt has not ended yet.
type unended struct {
	mu    sync.Mutex
	next  int
	names map[int]func() string // of what runs, by order of start
}

// add notes that something named by name runs; ended takes it off again.
func (u *unended) add(name func() string) (ended func()) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.names == nil {
		u.names = map[int]func() string{}
	}
	id := u.next
	u.next++
	u.names[id] = name
	return func() {
		u.mu.Lock()
		delete(u.names, id)
		u.mu.Unlock()
	}
}

// String lists what has not ended, equal names once.
func (u *unended) String() string {
	u.mu.Lock()
	var list []string
	for _, name := range u.names {
		list = append(list, name())
	}
	u.mu.Unlock()
	slices.Sort(list)
	return strings.Join(slices.Compact(list), "; ")
}

// doing says whose code the task is in: a connector that does not return and an operator that has much to do are to be
// told apart.
func (t *task) doing() string {
	m := t.inside.Load()
	if m == nil {
		return fmt.Sprintf("the task of %s (subtask %d)", t.head.node.Name, t.head.id.Index)
	}
	kind := "operator"
	switch {
	case m.op == nil:
		kind = "the connector of source"
	case m.sink != nil:
		kind = "the connector of sink"
	}
	return fmt.Sprintf("%s %s (subtask %d)", kind, m.node.Name, m.id.Index)
}

// named is a name that does not change.
func named(s string) func() string { return func() string { return s } }
