package op

import (
	"encoding/binary"

	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/exec"
)

// idleKeys finds keys without activity, as Flink does where several states of a key expire together: an active key gets
// a cleanup time of one and a half times the TTL from now, which is moved only when less than the TTL is left of it.
type idleKeys struct {
	ttl    int64
	times  checkpoint.Table // key → cleanup time
	timers *timerSet        // of the wall clock
	refs   []checkpoint.Ref
	due    checkpoint.Keys
}

// openIdleKeys opens the state named name for a TTL in ms.
func openIdleKeys(s exec.Subtask, name string, ttl int64) (*idleKeys, error) {
	k := &idleKeys{ttl: ttl}
	var err error
	if k.times, err = s.Table(checkpoint.TableOptions{Name: name, Format: "idle/1"}); err != nil {
		return nil, err
	}
	k.timers, err = openTimers(s, name+"-timers", max(1000, ttl/64))
	return k, err
}

// touch notes activity of keys at now.
func (k *idleKeys) touch(keys *checkpoint.Keys, now int64) error {
	k.refs = resize(k.refs, keys.Len())
	if err := k.times.Probe(keys, k.refs); err != nil {
		return err
	}
	for i, ref := range k.refs {
		created := false
		if ref == checkpoint.NoRow {
			var err error
			if ref, created, err = k.times.Insert(keys, i, 8); err != nil {
				return err
			}
		}
		if !created && int64(binary.BigEndian.Uint64(k.times.Value(ref))) >= now+k.ttl {
			continue
		}
		at := now + k.ttl + k.ttl/2
		binary.BigEndian.PutUint64(k.times.Mutable(ref), uint64(at))
		k.timers.add(at, keys.Key(i), keys.Hashes[i])
	}
	return k.timers.commit()
}

// expire calls f with the keys whose cleanup time has come and forgets them.
func (k *idleKeys) expire(now int64, f func(keys *checkpoint.Keys) error) error {
	return k.timers.fire(now, func(keys *checkpoint.Keys) error {
		k.refs = resize(k.refs, keys.Len())
		if err := k.times.Probe(keys, k.refs); err != nil {
			return err
		}
		k.due.Reset()
		for i, ref := range k.refs {
			if ref == checkpoint.NoRow || int64(binary.BigEndian.Uint64(k.times.Value(ref))) > now {
				continue // moved since the timer was set
			}
			appendKey(&k.due, keys.Key(i), keys.Hashes[i])
			k.times.Delete(ref)
		}
		if k.due.Len() == 0 {
			return nil
		}
		return f(&k.due)
	})
}
