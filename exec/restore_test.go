package exec

import (
	"fmt"
	"slices"
	"testing"

	"github.com/streamsql/streamsql/checkpoint"
)

// TestDecide is the table of recovery: pending committables with outcomes, and the checkpoint to go on from.
func TestDecide(t *testing.T) {
	const o, c, a, u = checkpoint.OutcomeOpen, checkpoint.OutcomeCommitted, checkpoint.OutcomeAborted, checkpoint.OutcomeUnknown
	type pend struct {
		cp      checkpoint.ID
		outcome checkpoint.Outcome
	}
	for _, tc := range []struct {
		name    string
		usable  []checkpoint.ID
		pending []pend
		target  checkpoint.ID
		lost    int
	}{
		{"nothing pending", []checkpoint.ID{5, 4}, nil, 5, 0},
		{"all open: commit", []checkpoint.ID{5, 4}, []pend{{5, o}, {5, o}}, 5, 0},
		{"some committed: commit the rest", []checkpoint.ID{5, 4}, []pend{{5, c}, {5, o}}, 5, 0},
		{"carried and open", []checkpoint.ID{5, 3}, []pend{{4, c}, {5, o}}, 5, 0},
		{"all of the newest aborted: back", []checkpoint.ID{5, 4}, []pend{{5, a}, {5, a}}, 4, 0},
		{"aborted and open: back, the open one is aborted later", []checkpoint.ID{5, 4}, []pend{{5, a}, {5, o}}, 4, 0},
		{"aborted and committed: lost", []checkpoint.ID{5, 4}, []pend{{5, a}, {5, c}}, 5, 1},
		{"unknown: lost", []checkpoint.ID{5, 4}, []pend{{5, u}, {5, o}}, 5, 1},
		{"unknown and aborted: both reported", []checkpoint.ID{5, 4}, []pend{{5, u}, {5, a}}, 5, 2},
		{"no older checkpoint: lost", []checkpoint.ID{5}, []pend{{5, a}}, 5, 1},
		{"carried committed, newest aborted: back", []checkpoint.ID{5, 4}, []pend{{4, c}, {5, a}}, 4, 0},
		{"carried aborted, newest open: back before the carried", []checkpoint.ID{5, 4, 3}, []pend{{4, a}, {5, o}}, 3, 0},
		{"carried aborted, newest committed: lost", []checkpoint.ID{5, 4, 3}, []pend{{4, a}, {5, c}}, 5, 1},
		{"a given-up checkpoint's output aborted: back to the published one before", []checkpoint.ID{6, 4}, []pend{{5, a}, {6, a}}, 4, 0},
		{"newest aborted, the given-up one before it committed: lost", []checkpoint.ID{6, 4}, []pend{{5, c}, {6, a}}, 6, 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var pending []checkpoint.Committable
			var outcomes []checkpoint.Outcome
			for _, p := range tc.pending {
				pending = append(pending, checkpoint.Committable{Checkpoint: p.cp})
				outcomes = append(outcomes, p.outcome)
			}
			v := decide(tc.usable[0], tc.usable, pending, outcomes)
			if v.target != tc.target || len(v.lost) != tc.lost {
				t.Fatalf("target %d, %d lost; want %d, %d", v.target, len(v.lost), tc.target, tc.lost)
			}
		})
	}
}

// TestSplitState: what a source saves comes back, at any new parallelism every split once, and damage is an error.
func TestSplitState(t *testing.T) {
	a := []*split{{name: "t-0", next: []byte{9}, wm: 5, rows: 3}, {name: "t-10", wm: NoWatermark, idle: true}}
	b := []*split{{name: "t-2", wm: MaxWatermark, done: true}}
	snap := func(i int, ss []*split) checkpoint.Snapshot {
		sn := checkpoint.Snapshot{Subtask: checkpoint.SubtaskID{Index: i}, State: encodeSplits(ss)}
		for _, s := range ss {
			sn.Positions = append(sn.Positions, checkpoint.Position{Split: s.name, Next: s.next})
		}
		return sn
	}
	known, err := restoreSplits([]checkpoint.Snapshot{snap(0, a), snap(1, b)})
	if err != nil {
		t.Fatal(err)
	}
	for p := 1; p <= 5; p++ {
		var names []string
		for _, ss := range assignSplits([]checkpoint.Split{"t-0", "t-2", "t-10", "t-11"}, known, p) {
			for _, s := range ss {
				names = append(names, string(s.name))
				if late := s.name == "t-11"; s.late != late {
					t.Fatalf("split %s: late = %v", s.name, s.late)
				}
			}
		}
		slices.Sort(names)
		if got := fmt.Sprint(names); got != "[t-0 t-10 t-11 t-2]" {
			t.Fatalf("parallelism %d: %s", p, got)
		}
	}
	if s := known["t-0"]; s.wm != 5 || s.rows != 3 || string(s.next) != "\x09" {
		t.Fatalf("%+v", s)
	}
	if s := known["t-10"]; s.wm != NoWatermark || !s.idle || s.done {
		t.Fatalf("%+v", s)
	}
	if s := known["t-2"]; s.wm != MaxWatermark || !s.done {
		t.Fatalf("%+v", s)
	}
	state := encodeSplits(a)
	for n := range state {
		if _, err := decodeSplits(state[:n]); err == nil {
			t.Fatalf("%d of %d bytes were accepted", n, len(state))
		}
	}
}

// FuzzDecodeSplits: damaged state is an error, never a panic.
func FuzzDecodeSplits(f *testing.F) {
	f.Add(encodeSplits([]*split{{name: "t-0", wm: 5, rows: 3}}))
	f.Fuzz(func(t *testing.T, b []byte) { _, _ = decodeSplits(b) })
}
