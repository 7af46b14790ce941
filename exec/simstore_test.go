package exec

import (
	"context"
	"errors"
	"io"
	"slices"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/streamsql/streamsql/checkpoint"
)

// openStore takes the state directory and opens it. With a disk it is a DirStore, whose process can die before any
// operation of the file system; without, a model of one. Either way the rows in flight go through the product's files.
func (a *simAttempt) openStore() (checkpoint.Store, error) {
	w := a.w
	if a.zombie {
		return nil, errOwned() // it was suspended before it had the lock, which another process holds now
	}
	w.owner = a.n
	if !w.onDisk && w.hasty == 0 {
		return &simStoreOf{&w.store, a}, nil
	}
	owned, err := checkpoint.Own(a.fs(), w.dir())
	if err != nil {
		return nil, err
	}
	if a.owned = owned; !w.onDisk {
		return &simStoreOf{&w.store, a}, nil
	}
	s, err := checkpoint.OpenStore(owned, checkpoint.StoreOptions{})
	if err != nil {
		return nil, err
	}
	return simDisk{s, a}, nil
}

// fs is the file system as the process sees it.
func (a *simAttempt) fs() vfs.FS {
	if !a.w.onDisk {
		return &simFS{a.w.disk, a}
	}
	return &simFS{errorfs.Wrap(a.w.disk, errorfs.InjectorFunc(a.operation)), a}
}

// simFS notes the locks of the process, which end with it.
type simFS struct {
	vfs.FS
	a *simAttempt
}

func (f *simFS) Lock(name string) (io.Closer, error) {
	l, err := f.FS.Lock(name)
	if err == nil {
		f.a.locks = append(f.a.locks, l)
	}
	return simLock{}, err
}

// simLock is closed by the world.
type simLock struct{}

func (simLock) Close() error { return nil }

var errSimDisk = errors.New("no space left on device")

// operation is called before every operation of the file system: the process dies there, or it fails. A process that hangs does
// so between operations of the store: with its lock lost (network file systems), what it checked before would be stale.
func (a *simAttempt) operation(op errorfs.Op) error {
	w := a.w
	if w.tell != nil && op.Kind.ReadOrWrite() == errorfs.OpIsWrite {
		a.say("file system: %v %s", op.Kind, op.Path)
	}
	if a.zombie {
		return nil
	}
	if w.crashes < simCrashes && w.chance(250) {
		w.crashes++
		panic(simCrash{})
	}
	if op.Kind.ReadOrWrite() == errorfs.OpIsWrite && w.chance(400) {
		return errSimDisk
	}
	return nil
}

// simDisk is a DirStore with moments between its operations.
type simDisk struct {
	*checkpoint.DirStore
	a *simAttempt
}

func (s simDisk) Publish(ctx context.Context, c *checkpoint.Checkpoint) error {
	s.a.step()
	err := s.DirStore.Publish(ctx, c)
	s.a.step()
	return err
}

func (s simDisk) Confirm(ctx context.Context, id checkpoint.ID) error {
	s.a.step()
	return s.DirStore.Confirm(ctx, id)
}

func (s simDisk) Discard(ctx context.Context, from checkpoint.ID) error {
	s.a.w.rewinds++
	return s.DirStore.Discard(ctx, from)
}

// simStore is the model of a state directory: what is written is durable at once.
type simStore struct {
	w         *simWorld
	all       []*checkpoint.Checkpoint
	confirmed checkpoint.ID
	used      checkpoint.ID
}

// simStoreOf is the model in the hands of a process.
type simStoreOf struct {
	*simStore
	a *simAttempt
}

func (s *simStoreOf) own() error {
	if !s.a.owns() || s.a.life != s.w.life {
		return errOwned()
	}
	return nil
}

func (s *simStoreOf) Publish(ctx context.Context, c *checkpoint.Checkpoint) error {
	s.a.step()
	if err := s.own(); err != nil {
		return err
	}
	if s.w.chance(25) {
		return errors.New("disk full")
	}
	s.all = append(s.all, c)
	s.used = max(s.used, c.ID)
	s.a.step()
	if s.w.chance(25) {
		return errors.New("directory not synced") // it is durable all the same
	}
	return nil
}

func (s *simStoreOf) Confirm(ctx context.Context, id checkpoint.ID) error {
	s.a.step()
	if err := s.own(); err != nil {
		return err
	}
	s.confirmed = max(s.confirmed, id)
	s.a.step()
	return nil
}

func (s *simStoreOf) Discard(ctx context.Context, from checkpoint.ID) error {
	s.a.step()
	if err := s.own(); err != nil {
		return err
	}
	s.w.rewinds++
	s.all = slices.DeleteFunc(s.all, func(c *checkpoint.Checkpoint) bool { return c.ID >= from })
	s.confirmed = min(s.confirmed, from-1)
	return nil
}

func (s *simStoreOf) Latest(ctx context.Context) (*checkpoint.Checkpoint, bool, error) {
	if len(s.all) == 0 {
		return nil, false, checkpoint.ErrNone
	}
	c := s.all[len(s.all)-1]
	return c, c.ID <= s.confirmed, nil
}

func (s *simStoreOf) List(ctx context.Context) ([]*checkpoint.Checkpoint, error) {
	out := slices.Clone(s.all)
	slices.Reverse(out)
	return out[:min(4, len(out))], nil
}

func (s *simStoreOf) NextID() checkpoint.ID { return s.used + 1 }

// Reserve makes an id used before its barrier is sent.
func (s *simStoreOf) Reserve(ctx context.Context, id checkpoint.ID) error {
	if err := s.own(); err != nil {
		return err
	}
	s.used = max(s.used, id)
	return nil
}

// A life has one lineage.
func (s *simStoreOf) Lineages(context.Context) ([]string, error) { return nil, nil }
func (s *simStoreOf) Begin(context.Context, string) error        { return nil }
func (s *simStoreOf) End(context.Context, ...string) error       { return nil }
