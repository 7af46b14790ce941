package op

import (
	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/exec"
)

// retention drops the entries of a multimap whose keys were not used for ttl ms of processing time, half as long again
// at most, as Flink's cleanup timers do. The entries of a key stay or go together, which a TTL of the multimap itself
// would not give. With ttl 0 it does nothing.
type retention struct {
	ttl    int64
	now    func() int64
	rows   *multimap
	used   checkpoint.Table // key → eight bytes, when it was used last; a key that is here has one timer
	timers *timerSet
	refs   []checkpoint.Ref
}

func (t *retention) open(s exec.Subtask, rows *multimap, ttl int64) (err error) {
	t.ttl, t.now, t.rows = ttl, s.Now, rows
	if ttl == 0 {
		return nil
	}
	if t.used, err = s.Table(checkpoint.TableOptions{Name: "used", Format: "used/2"}); err != nil {
		return err
	}
	t.timers, err = openTimers(s, "used-timers", max(1000, ttl/64))
	return err
}

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
	now := t.now()
	for i, r := range t.refs {
		anew := false
		if r == checkpoint.NoRow {
			var err error
			if r, anew, err = t.used.Insert(keys, i, 8); err != nil {
				return err
			}
			if anew {
				t.timers.add(now+t.ttl+t.ttl/2, keys.Key(i), keys.Hashes[i])
			}
		} else {
			anew = t.over(r, now)
		}
		setWord(t.used.Mutable(r), 0, now)
		if !anew {
			continue
		}
		if err := t.rows.at(i).clear(); err != nil {
			return err
		}
		if err := fresh(i); err != nil {
			return err
		}
	}
	return t.timers.commit()
}

// over reports a key whose time is over at now.
func (t *retention) over(r checkpoint.Ref, now int64) bool {
	return word(t.used.Value(r), 0)+t.ttl <= now
}

// next is when expire has work.
func (t *retention) next() (at int64, ok bool) {
	if t.ttl == 0 {
		return 0, false
	}
	return t.timers.next()
}

// expire drops the entries of the keys whose time is over at now.
func (t *retention) expire(now int64) error {
	if t.ttl == 0 {
		return nil
	}
	return t.timers.fire(now, func(keys *checkpoint.Keys) error {
		t.refs = resize(t.refs, keys.Len())
		if err := t.used.Probe(keys, t.refs); err != nil {
			return err
		}
		if err := t.rows.probe(keys); err != nil {
			return err
		}
		for i, r := range t.refs {
			if r == checkpoint.NoRow {
				continue
			}
			if !t.over(r, now) {
				t.timers.add(now+max(t.ttl/2, 1), keys.Key(i), keys.Hashes[i])
				continue
			}
			if err := t.rows.at(i).clear(); err != nil {
				return err
			}
			t.used.Delete(r)
		}
		return t.rows.done()
	})
}
