package op

import (
	"container/list"
	"sync"
	"time"

	"github.com/streamsql/streamsql/connectors"
)

// lookupCache keeps the rows found by key, for all subtasks of a lookup join. Keys are encoded keys, rows are encoded
// rows. Safe for concurrent use.
type lookupCache struct {
	spec connectors.LookupCache
	now  func() int64 // ms

	mu     sync.Mutex
	byKey  map[string]*list.Element
	recent list.List // of *cachedRows, most recently used first
	rows   int64
}

// cachedRows are the rows of a key; none when the key is known to have none.
type cachedRows struct {
	key           string
	rows          [][]byte
	written, used int64
}

func newLookupCache(spec connectors.LookupCache, now func() int64) *lookupCache {
	if !spec.Partial {
		return nil
	}
	return &lookupCache{spec: spec, now: now, byKey: map[string]*list.Element{}}
}

// get finds the rows of a key; ok is false when they must be fetched. The rows must not be changed.
func (c *lookupCache) get(key []byte) (rows [][]byte, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.byKey[string(key)]
	if e == nil {
		return nil, false
	}
	r := e.Value.(*cachedRows)
	now := c.now()
	if expired(now, r.written, c.spec.ExpireAfterWrite) || expired(now, r.used, c.spec.ExpireAfterAccess) {
		c.remove(e)
		return nil, false
	}
	r.used = now
	c.recent.MoveToFront(e)
	return r.rows, true
}

func expired(now, since int64, after time.Duration) bool {
	return after > 0 && now-since >= after.Milliseconds()
}

// put keeps the rows of a key, which it owns from now on.
func (c *lookupCache) put(key []byte, rows [][]byte) {
	if len(rows) == 0 && !c.spec.CacheMissing {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := c.byKey[string(key)]; e != nil {
		c.remove(e)
	}
	now := c.now()
	r := &cachedRows{key: string(key), rows: rows, written: now, used: now}
	c.byKey[r.key] = c.recent.PushFront(r)
	c.rows += r.weight()
	for c.spec.MaxRows > 0 && c.rows > c.spec.MaxRows {
		c.remove(c.recent.Back())
	}
	// What expires goes from the end, where it is the oldest by use, so that dead rows do not pile up.
	for e := c.recent.Back(); e != nil; e = c.recent.Back() {
		if o := e.Value.(*cachedRows); !expired(now, o.written, c.spec.ExpireAfterWrite) && !expired(now, o.used, c.spec.ExpireAfterAccess) {
			break
		}
		c.remove(e)
	}
}

// weight is what the entry counts for: a key without rows takes memory, too.
func (r *cachedRows) weight() int64 { return max(1, int64(len(r.rows))) }

func (c *lookupCache) remove(e *list.Element) {
	r := c.recent.Remove(e).(*cachedRows)
	delete(c.byKey, r.key)
	c.rows -= r.weight()
}
