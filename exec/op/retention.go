package op

import (
	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/exec"
	"github.com/streamsql/streamsql/sql/batch"
)

// retention drops the entries of a multimap whose keys were not used for ttl ms of processing time, half as long again
// at most, as Flink's cleanup timers do. The entries of a key stay or go together, which a TTL of the multimap itself
// would not give. With ttl 0 it does nothing.
type retention struct {
	ttl    int64
	now    func() int64
	rows   *multimap
	used   checkpoint.Table // a row per key in use, which expires
	timers timers
	due    checkpoint.Keys
	refs   []checkpoint.Ref
	times  []int64
}

func (t *retention) open(s exec.Subtask, rows *multimap, ttl int64) (err error) {
	t.ttl, t.now, t.rows = ttl, s.Now, rows
	if ttl == 0 {
		return nil
	}
	if t.used, err = s.Table(checkpoint.TableOptions{Name: "used", Format: "used/1", TTL: ttl}); err != nil {
		return err
	}
	return rows.scan(func(key, _, _ []byte) bool {
		t.timers.add(t.end(), key, checkpoint.HashKey(key))
		return true
	})
}

func (t *retention) end() int64 { return t.now() + t.ttl + t.ttl/2 }

// touch notes the use of keys, which the multimap has been probed for. Entries of a key whose time is over are dropped;
// fresh is called for every key that begins anew.
func (t *retention) touch(keys *checkpoint.Keys, fresh func(i int) error) error {
	if t.ttl == 0 {
		return nil
	}
	t.refs = resize(t.refs, keys.Len())
	if err := t.used.Probe(keys, t.refs); err != nil {
		return err
	}
	for i, r := range t.refs {
		if r != checkpoint.NoRow {
			t.used.Mutable(r)
			continue
		}
		r, created, err := t.used.Insert(keys, i, 0)
		if err != nil {
			return err
		}
		t.refs[i] = r
		if !created {
			continue
		}
		if err := t.rows.at(i).clear(); err != nil {
			return err
		}
		if err := fresh(i); err != nil {
			return err
		}
		t.timers.add(t.end(), keys.Key(i), keys.Hashes[i])
	}
	return nil
}

// next is when expire has work.
func (t *retention) next() (at int64, ok bool) { return t.timers.next() }

// expire drops the entries of the keys whose time is over at now.
func (t *retention) expire(now int64) error {
	for {
		t.due.Reset()
		if t.times = t.timers.take(now, batch.Size, &t.due, t.times[:0]); len(t.times) == 0 {
			return nil
		}
		t.refs = resize(t.refs, t.due.Len())
		if err := t.used.Probe(&t.due, t.refs); err != nil {
			return err
		}
		if err := t.rows.probe(&t.due); err != nil {
			return err
		}
		for i, r := range t.refs {
			if r != checkpoint.NoRow {
				t.timers.add(now+max(t.ttl/2, 1), t.due.Key(i), t.due.Hashes[i])
				continue
			}
			if err := t.rows.at(i).clear(); err != nil {
				return err
			}
		}
		if err := t.rows.done(); err != nil {
			return err
		}
	}
}
