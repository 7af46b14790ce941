package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/streamsql/streamsql/sql/diag"
)

// fakeCommitter answers from a table and records the order of calls.
type fakeCommitter struct {
	out      map[ID]Outcome
	calls    []string
	failures int
	lost     bool
}

func (f *fakeCommitter) Classify(ctx context.Context, cs []Committable) ([]Outcome, error) {
	f.calls = append(f.calls, "classify")
	var out []Outcome
	for _, c := range cs {
		out = append(out, f.out[c.Checkpoint])
	}
	return out, nil
}

func (f *fakeCommitter) Commit(ctx context.Context, cs []Committable) error {
	var ids []string
	for _, c := range cs {
		ids = append(ids, fmt.Sprint(c.Checkpoint))
	}
	f.calls = append(f.calls, "commit "+strings.Join(ids, ","))
	if f.lost {
		return errorf(diag.Lost, "gone")
	}
	if f.failures > 0 {
		f.failures--
		return errors.New("broker not there")
	}
	for _, c := range cs {
		f.out[c.Checkpoint] = OutcomeCommitted
	}
	return nil
}

func (f *fakeCommitter) Abort(ctx context.Context, keep []Committable) error {
	f.calls = append(f.calls, fmt.Sprintf("abort keep %d", len(keep)))
	for id, o := range f.out {
		kept := slices.ContainsFunc(keep, func(c Committable) bool { return c.Checkpoint == id })
		if o == OutcomeOpen && !kept {
			f.out[id] = OutcomeAborted
		}
	}
	return nil
}

func (f *fakeCommitter) Close() error { return nil }

func TestRecoverOrder(t *testing.T) {
	// Goal: the order of the calls to sinks, and the decisions of §R3, over the real store.
	for _, c := range []struct {
		name      string
		out       map[ID]Outcome // of the committables of checkpoints 1, 2, 3; 3 lists 2 and 3, 2 lists 1 and 2
		confirmed ID
		failures  int
		want      ID
		code      diag.Code
		calls     string
	}{
		{name: "all open", out: map[ID]Outcome{1: OutcomeCommitted}, confirmed: 1, want: 3,
			calls: "classify; commit 2,3; abort keep 0"},
		{name: "commit is repeated", out: map[ID]Outcome{1: OutcomeCommitted}, confirmed: 1, failures: 2, want: 3,
			calls: "classify; commit 2,3; commit 2,3; commit 2,3; abort keep 0"},
		{name: "confirmed", out: map[ID]Outcome{1: OutcomeCommitted, 2: OutcomeCommitted, 3: OutcomeCommitted}, confirmed: 3, want: 3,
			calls: "abort keep 0"},
		{name: "partly committed", out: map[ID]Outcome{1: OutcomeCommitted, 2: OutcomeCommitted}, confirmed: 1, want: 3,
			calls: "classify; commit 2,3; abort keep 0"},
		{name: "newest aborted", out: map[ID]Outcome{1: OutcomeCommitted, 3: OutcomeAborted}, confirmed: 1, want: 2,
			calls: "classify; abort keep 1; classify; classify; commit 1,2; abort keep 0"},
		{name: "both aborted", out: map[ID]Outcome{1: OutcomeCommitted, 2: OutcomeAborted, 3: OutcomeAborted}, confirmed: 1, want: 1,
			calls: "classify; abort keep 0; classify; abort keep 0"},
		{name: "aborted below a committed one", out: map[ID]Outcome{1: OutcomeCommitted, 2: OutcomeAborted, 3: OutcomeCommitted},
			confirmed: 1, code: diag.Lost, calls: "classify"},
		{name: "unknown", out: map[ID]Outcome{1: OutcomeCommitted, 2: OutcomeUnknown}, confirmed: 1, code: diag.Lost, calls: "classify"},
		{name: "everything aborted, nothing to go back to", out: map[ID]Outcome{1: OutcomeAborted, 2: OutcomeAborted, 3: OutcomeAborted},
			confirmed: 0, code: diag.Lost, calls: "classify"},
	} {
		t.Run(c.name, func(t *testing.T) {
			owner, s := openStore(t, vfs.NewMem())
			for id := ID(1); id <= 3; id++ {
				cp := testCheckpoint(t, owner, id)
				if id > 1 {
					cp.Pending = append([]Committable{{Sink: "s", Checkpoint: id - 1, Lineage: "l", Payload: []byte{byte(id - 1)}}}, cp.Pending...)
				}
				if c.confirmed == 0 && id == 3 {
					cp.Pending = append([]Committable{{Sink: "s", Checkpoint: 1, Lineage: "l", Payload: []byte{1}}}, cp.Pending...)
				}
				if err := s.Publish(bg, cp); err != nil {
					t.Fatal(err)
				}
			}
			if err := s.Confirm(bg, c.confirmed); err != nil {
				t.Fatal(err)
			}
			f := &fakeCommitter{out: c.out, failures: c.failures}
			cp, err := Recover(bg, s, map[SinkID]Committer{"s": f},
				RecoverOptions{Sleep: func(context.Context, time.Duration) error { return nil }})
			if c.code != "" {
				if diag.CodeOf(err) != c.code {
					t.Fatalf("error %v, want code %s", err, c.code)
				}
			} else if err != nil || cp.ID != c.want {
				t.Fatalf("resumes at %v, %v; want %d", cp, err, c.want)
			}
			if got := strings.Join(f.calls, "; "); got != c.calls {
				t.Errorf("calls %s\nwant  %s", got, c.calls)
			}
			if s.NextID() != 4 {
				t.Errorf("next id %d, want 4", s.NextID())
			}
			if c.code == "" {
				if _, confirmed, err := s.Latest(bg); !confirmed || err != nil {
					t.Errorf("not confirmed after recovery: %v", err)
				}
			}
		})
	}
}

// TestDecide is the table of recovery: pending committables with outcomes, and the checkpoint to go on from.
func TestDecide(t *testing.T) {
	const o, c, a, u = OutcomeOpen, OutcomeCommitted, OutcomeAborted, OutcomeUnknown
	type pend struct {
		cp      ID
		outcome Outcome
	}
	for _, tc := range []struct {
		name    string
		usable  []ID
		pending []pend
		target  ID
		lost    bool
	}{
		{"nothing pending", []ID{5, 4}, nil, 5, false},
		{"all open: commit", []ID{5, 4}, []pend{{5, o}, {5, o}}, 5, false},
		{"some committed: commit the rest", []ID{5, 4}, []pend{{5, c}, {5, o}}, 5, false},
		{"carried and open", []ID{5, 3}, []pend{{4, c}, {5, o}}, 5, false},
		{"all of the newest aborted: back", []ID{5, 4}, []pend{{5, a}, {5, a}}, 4, false},
		{"aborted and open: back, the open one is aborted later", []ID{5, 4}, []pend{{5, a}, {5, o}}, 4, false},
		{"aborted and committed: lost", []ID{5, 4}, []pend{{5, a}, {5, c}}, 5, true},
		{"unknown: lost", []ID{5, 4}, []pend{{5, u}, {5, o}}, 5, true},
		{"unknown and aborted: both reported", []ID{5, 4}, []pend{{5, u}, {5, a}}, 5, true},
		{"no older checkpoint: lost", []ID{5}, []pend{{5, a}}, 5, true},
		{"carried committed, newest aborted: back", []ID{5, 4}, []pend{{4, c}, {5, a}}, 4, false},
		{"carried aborted, newest open: back before the carried", []ID{5, 4, 3}, []pend{{4, a}, {5, o}}, 3, false},
		{"carried aborted, newest committed: lost", []ID{5, 4, 3}, []pend{{4, a}, {5, c}}, 5, true},
		{"a given-up checkpoint's output aborted: back to the published one before", []ID{6, 4}, []pend{{5, a}, {6, a}}, 4, false},
		{"newest aborted, the given-up one before it committed: lost", []ID{6, 4}, []pend{{5, c}, {6, a}}, 6, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var pending []Committable
			var outcomes []Outcome
			for _, p := range tc.pending {
				pending = append(pending, Committable{Checkpoint: p.cp})
				outcomes = append(outcomes, p.outcome)
			}
			s := listStore{}
			for _, id := range tc.usable {
				s.all = append(s.all, &Checkpoint{ID: id})
			}
			s.all[0].Pending = pending
			r := recovery{s: s, o: RecoverOptions{Log: slog.New(slog.DiscardHandler)}}
			st, err := r.settle(context.Background(), s.all[0], outcomes, nil)
			target := st.back
			if err == nil && target == 0 {
				target = tc.usable[0]
			}
			if lost := err != nil; lost != tc.lost || !lost && target != tc.target {
				t.Fatalf("target %d, %v; want %d, lost %v", target, err, tc.target, tc.lost)
			}
			if err != nil && diag.CodeOf(err) != diag.Lost {
				t.Fatal(err)
			}
		})
	}
}

// listStore is a store of which only List is used.
type listStore struct {
	Store
	all []*Checkpoint
}

func (s listStore) List(context.Context) ([]*Checkpoint, error) { return s.all, nil }

func TestDamagedWithoutCommittables(t *testing.T) {
	// Goal: a confirmed checkpoint of a job that commits nothing (upsert sinks) is replaced by the one before when a file
	// is damaged, and its id stays used.
	mem := vfs.NewCrashableMem()
	owner, s := openStore(t, mem)
	var last *Checkpoint
	for id := ID(1); id <= 3; id++ {
		last = testCheckpoint(t, owner, id)
		last.Pending = nil
		if id == 1 {
			last.Pending = []Committable{{Sink: "s", Checkpoint: 1, Payload: []byte{1}}}
		}
		if err := s.Publish(bg, last); err != nil {
			t.Fatal(err)
		}
		if err := s.Confirm(bg, id); err != nil {
			t.Fatal(err)
		}
	}
	for round, want := range []ID{2, 1} {
		for _, f := range last.Subtasks[0].Files {
			if strings.HasSuffix(f.Path, segmentSuffix) {
				overwrite(t, mem, "/job/"+f.Path, []byte("x"))
			}
		}
		owner.Close()
		owner, s = openStore(t, mem)
		f := &fakeCommitter{out: map[ID]Outcome{1: OutcomeCommitted}}
		c, err := Recover(bg, s, map[SinkID]Committer{"s": f}, RecoverOptions{})
		if err != nil || c.ID != want {
			t.Fatalf("round %d: %v %v", round, c, err)
		}
		if s.NextID() != 4 {
			t.Fatalf("next id %d", s.NextID())
		}
		last = c
	}
	// Behind checkpoint 1 there is nothing.
	for _, f := range last.Subtasks[0].Files {
		overwrite(t, mem, "/job/"+f.Path, nil)
	}
	owner.Close()
	_, s = openStore(t, mem)
	if _, err := Recover(bg, s, map[SinkID]Committer{"s": &fakeCommitter{}}, RecoverOptions{}); diag.CodeOf(err) != diag.Lost {
		t.Fatalf("nothing left: %v", err)
	}
}
