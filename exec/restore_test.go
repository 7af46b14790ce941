package exec

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/streamsql/streamsql/checkpoint"
)

// TestSplitState: what a source saves comes back, at any new parallelism every split once, and damage is an error.
func TestSplitState(t *testing.T) {
	a := []*split{{name: "t-0", next: []byte{9}, wm: 5}, {name: "t-10", wm: NoWatermark, idle: true}}
	b := []*split{{name: "t-2", wm: MaxWatermark, done: true}}
	snap := func(i int, ss []*split) checkpoint.Snapshot {
		sn := checkpoint.Snapshot{Subtask: checkpoint.SubtaskID{Index: i}, State: encodeSplits(ss)}
		for _, s := range ss {
			sn.Positions = append(sn.Positions, checkpoint.Position{Split: s.name, Next: s.next})
		}
		return sn
	}
	snaps := []checkpoint.Snapshot{snap(0, a), snap(1, b)}
	var known map[checkpoint.Split]*split
	for p := 1; p <= 5; p++ {
		var err error
		if known, err = restoreSplits(snaps, p); err != nil {
			t.Fatal(err)
		}
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
	if s := known["t-0"]; s.wm != 5 || string(s.next) != "\x09" {
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

// TestSplitsStay: splits stay with the subtask that had them, wherever the names of new ones lie between theirs: the operators chained to
// the subtask are at an event time that others' rows can be behind. At another parallelism all are dealt out anew, evenly.
func TestSplitsStay(t *testing.T) {
	snaps := []checkpoint.Snapshot{
		{State: encodeSplits([]*split{{name: "b", wm: 200}, {name: "f", done: true}})},
		{State: encodeSplits([]*split{{name: "d", wm: 60}}), Positions: []checkpoint.Position{{Split: "g", Next: []byte{1}}}},
	}
	for _, tc := range []struct {
		listed      []checkpoint.Split
		fresh       bool
		parallelism int
		want        string
	}{
		{listed: []checkpoint.Split{"b", "d"}, parallelism: 2, want: "[b f] [d g]"},
		{listed: []checkpoint.Split{"a", "b", "c", "d", "e"}, parallelism: 2, want: "[a b c f] [d e g]"},
		{listed: []checkpoint.Split{"d"}, parallelism: 1, want: "[b d f g]"},
		{listed: []checkpoint.Split{"b", "d"}, parallelism: 3, want: "[b] [d] [f g]"},
		{listed: []checkpoint.Split{"e", "d", "c", "b", "a"}, fresh: true, parallelism: 2, want: "[a c e] [b d]"},
	} {
		var known map[checkpoint.Split]*split
		if !tc.fresh {
			var err error
			if known, err = restoreSplits(snaps, tc.parallelism); err != nil {
				t.Fatal(err)
			}
		}
		var got []string
		for _, ss := range assignSplits(tc.listed, known, tc.parallelism) {
			var names []string
			for _, s := range ss {
				names = append(names, string(s.name))
			}
			got = append(got, fmt.Sprint(names))
		}
		if s := strings.Join(got, " "); s != tc.want {
			t.Errorf("%v at parallelism %d: %s, want %s", tc.listed, tc.parallelism, s, tc.want)
		}
	}
}

// FuzzDecodeSplits: damaged state is an error, never a panic.
func FuzzDecodeSplits(f *testing.F) {
	f.Add(encodeSplits([]*split{{name: "t-0", wm: 5}}))
	f.Fuzz(func(t *testing.T, b []byte) { _, _ = decodeSplits(b) })
}
