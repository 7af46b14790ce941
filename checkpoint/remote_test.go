package checkpoint

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/streamsql/streamsql/sql/diag"
	"github.com/streamsql/streamsql/tests/short"
)

// flakyObjects is an ObjectStore whose writes and removals fail: before they happen, after they happened, or before they happen
// later.
type flakyObjects struct {
	ObjectStore
	r     *rand.Rand
	share float64
	later []func()
	said  strings.Builder // what was written and removed, without the names made by chance
}

var errNoAnswer = errors.New("no answer")

func (o *flakyObjects) write(what, key string, do func() error) error {
	if strings.Contains(key, "/"+filesPrefix) {
		key = key[:strings.LastIndexByte(key, '-')]
	}
	fmt.Fprintln(&o.said, what, key)
	if o.r.Float64() >= o.share {
		return do()
	}
	switch o.r.IntN(3) {
	case 0:
		do()
	case 1:
		o.later = append(o.later, func() { do() })
	}
	return errNoAnswer
}

func (o *flakyObjects) Create(ctx context.Context, key string, data []byte) error {
	return o.write("create", key, func() error { return o.ObjectStore.Create(context.Background(), key, data) })
}

func (o *flakyObjects) Put(ctx context.Context, key string, r io.Reader, size int64) error {
	data, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	return o.write("put", key, func() error { return o.ObjectStore.Put(context.Background(), key, bytes.NewReader(data), size) })
}

func (o *flakyObjects) Remove(ctx context.Context, key string) error {
	return o.write("remove", key, func() error { return o.ObjectStore.Remove(context.Background(), key) })
}

// someLater lets writes of the past arrive.
func (o *flakyObjects) someLater() {
	for len(o.later) > 0 && o.r.IntN(2) == 0 {
		o.later[0]()
		o.later = o.later[1:]
	}
}

// machine is a process that may own the log, on a disk of its own.
type machine struct {
	fs    *vfs.MemFS
	owner *Owner
	store *RemoteStore
}

func (m *machine) open(objects ObjectStore) error {
	m.drop()
	owner, err := Own(m.fs, "/job")
	if err != nil {
		return err
	}
	if m.store, err = OpenRemote(context.Background(), owner, objects, "team/job", StoreOptions{}); err != nil {
		owner.Close()
		return err
	}
	m.owner = owner
	return nil
}

func (m *machine) drop() {
	if m.owner != nil {
		m.owner.Close()
	}
	m.owner, m.store = nil, nil
}

// Goal: whatever fails, and however many machines believe they own a job, its checkpoints are one sequence: what a Publish
// reported durable is what the next owner finds, or something newer that an owner tried; what an old owner publishes fails;
// an id is used once. Method: random steps of three machines over a store that loses answers and applies writes and removals
// late; owners that were replaced clean up, too.
func TestRemoteAgainstModel(t *testing.T) {
	for seed := range uint64(short.Or(200, 10)) {
		remoteRun(t, seed)
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

// A seed is one run: what a failure printed can be looked at again.
func TestRemoteModelIsRepeatable(t *testing.T) {
	for seed := range uint64(short.Or(5, 2)) {
		if a, b := remoteRun(t, seed), remoteRun(t, seed); a != b {
			t.Errorf("seed %d: two runs differ:\n%s\n---\n%s", seed, a, b)
		}
	}
}

// remoteRun returns what was written to the store.
func remoteRun(t *testing.T, seed uint64) string {
	r := rand.New(rand.NewPCG(seed, 7))
	bucket, err := OpenDirObjects(vfs.NewMem(), "/bucket")
	if err != nil {
		t.Fatal(err)
	}
	objects := &flakyObjects{ObjectStore: bucket, r: r}
	machines := []*machine{{fs: vfs.NewMem()}, {fs: vfs.NewMem()}, {fs: vfs.NewMem()}}
	var now *machine            // the newest owner
	tried := map[ID]time.Time{} // ids whose Publish was called
	reserved := map[ID]bool{}
	durable := ID(0) // the newest that was reported durable
	bg := context.Background()
	for step := range 60 {
		objects.someLater()
		objects.share = []float64{0, 0.2, 0.5}[r.IntN(3)]
		m := machines[r.IntN(3)]
		switch k := r.IntN(10); {
		case now == nil || k == 0:
			if m.open(objects) != nil {
				if now != nil {
					now.drop() // it may have been taken over all the same
				}
				now = nil
				continue
			}
			now = m
			c, _, err := m.store.Latest(bg)
			switch {
			case errors.Is(err, ErrNone):
				if durable != 0 {
					t.Errorf("step %d: checkpoint %d is gone", step, durable)
				}
				continue
			case err != nil:
				t.Errorf("step %d: %v", step, err)
				return objects.said.String()
			}
			if at, ok := tried[c.ID]; c.ID < durable || !ok || !at.Equal(c.StartedAt) {
				t.Errorf("step %d: found checkpoint %d (%v), durable was %d", step, c.ID, c.StartedAt, durable)
			}
			if err := m.store.Verify(bg, c); err != nil {
				t.Errorf("step %d: %v", step, err)
			}
			durable = c.ID
		case m.store == nil:
		case k == 1:
			if err := m.store.Collect(bg); m != now || errors.Is(err, errNoAnswer) {
				continue
			} else if diag.CodeOf(err) == diag.Conflict {
				now.drop() // by an attempt to take over that looked as if it had failed
				now = nil
			} else if err != nil {
				t.Errorf("step %d: %v", step, err)
			}
		case k == 2 && m == now:
			if err := m.store.Confirm(bg, durable); diag.CodeOf(err) == diag.Conflict {
				now.drop()
				now = nil
			} else if err != nil && !errors.Is(err, errNoAnswer) {
				t.Errorf("step %d: %v", step, err)
			}
		default:
			id := m.store.NextID()
			err := m.store.Reserve(bg, id)
			if m != now && err == nil {
				err = remotePublish(m, id, time.Unix(int64(step), 0))
				if err == nil {
					t.Errorf("step %d: an old owner published checkpoint %d", step, id)
				}
			}
			if diag.CodeOf(err) == diag.Conflict {
				if m.drop(); m == now {
					now = nil
				}
			}
			if m != now || err != nil {
				continue
			}
			if reserved[id] {
				t.Errorf("step %d: id %d is used twice", step, id)
			}
			reserved[id], tried[id] = true, time.Unix(int64(step), 0)
			if err := remotePublish(m, id, tried[id]); err == nil {
				durable = id
			} else if diag.CodeOf(err) == diag.Conflict {
				now.drop()
				now = nil
			} else if !errors.Is(err, errNoAnswer) {
				t.Errorf("step %d: %v", step, err)
			}
		}
	}
	return objects.said.String()
}

func remotePublish(m *machine, id ID, at time.Time) error {
	c, err := tryCheckpoint(m.owner, id)
	if err != nil {
		return err
	}
	c.StartedAt = at
	return m.store.Publish(context.Background(), c)
}

// Old checkpoints and the files that only they need go; what is retained can be restored on an empty machine.
func TestRemoteCollect(t *testing.T) {
	bucket, err := OpenDirObjects(vfs.NewMem(), "/bucket")
	if err != nil {
		t.Fatal(err)
	}
	bg := context.Background()
	m := &machine{fs: vfs.NewMem()}
	if err := m.open(bucket); err != nil {
		t.Fatal(err)
	}
	for id := ID(1); id <= 20; id++ {
		if err := errors.Join(m.store.Reserve(bg, id), remotePublish(m, id, time.Now()), m.store.Confirm(bg, id), m.store.Collect(bg)); err != nil {
			t.Fatal(err)
		}
	}
	count := map[string]int{}
	for _, prefix := range []string{filesPrefix, logPrefix} {
		if err := bucket.List(bg, "team/job/"+prefix, func(ObjectInfo) error { count[prefix]++; return nil }); err != nil {
			t.Fatal(err)
		}
	}
	if count[filesPrefix] > 4 || count[logPrefix] > 8 {
		t.Errorf("after 20 checkpoints of one file, three retained: %v", count)
	}
	other := &machine{fs: vfs.NewMem()}
	if err := other.open(bucket); err != nil {
		t.Fatal(err)
	}
	c, confirmed, err := other.store.Latest(bg)
	if err != nil || c.ID != 20 || !confirmed {
		t.Fatalf("checkpoint %v, confirmed %v, %v", c, confirmed, err)
	}
	if err := other.store.Verify(bg, c); err != nil {
		t.Error(err)
	}
	if err := remotePublish(m, 21, time.Now()); diag.CodeOf(err) != diag.Conflict {
		t.Errorf("the old owner's publish: %v, want a conflict", err)
	}
}

// A directory whose checkpoints count elsewhere is not used without that, nor with another; one with checkpoints of its own
// moves in, unless there are others already.
func TestRemoteRefusals(t *testing.T) {
	bg := context.Background()
	bucket, err := OpenDirObjects(vfs.NewMem(), "/bucket")
	if err != nil {
		t.Fatal(err)
	}
	local := &machine{fs: vfs.NewMem()}
	owner, err := Own(local.fs, "/job")
	if err != nil {
		t.Fatal(err)
	}
	s, err := OpenStore(owner, StoreOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for id := ID(1); id <= 2; id++ {
		if err := errors.Join(s.Publish(bg, testCheckpoint(t, owner, id)), s.Confirm(bg, id)); err != nil {
			t.Fatal(err)
		}
	}
	owner.Close()
	if err := local.open(bucket); err != nil {
		t.Fatal(err)
	}
	fresh := &machine{fs: vfs.NewMem()}
	if err := fresh.open(bucket); err != nil {
		t.Fatal(err)
	}
	if c, confirmed, err := fresh.store.Latest(bg); err != nil || c.ID != 2 || !confirmed {
		t.Errorf("moved in: %v, %v, %v", c, confirmed, err)
	}
	fresh.drop()
	owner, err = Own(fresh.fs, "/job")
	if err != nil {
		t.Fatal(err)
	}
	defer owner.Close()
	if _, err := OpenStore(owner, StoreOptions{}); diag.CodeOf(err) != diag.Config {
		t.Errorf("opened without the storage: %v", err)
	}
	if _, err := OpenRemote(bg, owner, bucket, "other/job", StoreOptions{}); diag.CodeOf(err) != diag.Config {
		t.Errorf("opened with another prefix: %v", err)
	}
	apart := vfs.NewMem()
	if owner, err = Own(apart, "/job"); err != nil {
		t.Fatal(err)
	}
	if s, err = OpenStore(owner, StoreOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := s.Publish(bg, testCheckpoint(t, owner, 1)); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenRemote(bg, owner, bucket, "team/job", StoreOptions{}); diag.CodeOf(err) != diag.Config {
		t.Errorf("two histories: %v", err)
	}
}

// Every object of a job damaged, cut short and removed in turn: the next owner finds the newest checkpoint whole, an older one
// in its place where the restore may decide that, or refuses; it never starts from nothing.
func TestRemoteDamage(t *testing.T) {
	bg := context.Background()
	made := vfs.NewMem()
	bucket, err := OpenDirObjects(made, "/bucket")
	if err != nil {
		t.Fatal(err)
	}
	m := &machine{fs: vfs.NewMem()}
	if err := m.open(bucket); err != nil {
		t.Fatal(err)
	}
	for id := ID(1); id <= 3; id++ {
		if err := errors.Join(m.store.Reserve(bg, id), remotePublish(m, id, time.Now())); err != nil {
			t.Fatal(err)
		}
	}
	var keys []string
	if err := bucket.List(bg, "", func(o ObjectInfo) error { keys = append(keys, o.Key); return nil }); err != nil {
		t.Fatal(err)
	}
	for _, key := range keys {
		for how := range 3 {
			t.Run(fmt.Sprintf("%s/%d", key, how), func(t *testing.T) {
				copied, _ := OpenDirObjects(vfs.NewMem(), "/bucket")
				for _, k := range keys {
					r, err := bucket.Get(bg, k)
					if err != nil {
						t.Fatal(err)
					}
					data, _ := io.ReadAll(r)
					r.Close()
					if k == key {
						switch how {
						case 0:
							data[len(data)/2] ^= 1
						case 1:
							data = data[:len(data)/2]
						case 2:
							continue
						}
					}
					if err := copied.Put(bg, k, bytes.NewReader(data), int64(len(data))); err != nil {
						t.Fatal(err)
					}
				}
				other := &machine{fs: vfs.NewMem()}
				if err := other.open(copied); err != nil {
					if diag.CodeOf(err) == diag.Internal {
						t.Errorf("refused without a class: %v", err)
					}
					return
				}
				c, _, err := other.store.Latest(bg)
				if err != nil {
					t.Fatalf("neither found nor refused: %v", err)
				}
				if c.ID != 3 {
					t.Errorf("checkpoint %d was taken for the newest", c.ID)
				}
			})
		}
	}
}
