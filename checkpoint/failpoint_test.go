package checkpoint

import (
	"errors"
	"testing"
	"time"
)

// TestFailpoint: a point acts at its visit, once; a bad specification is refused.
func TestFailpoint(t *testing.T) {
	defer func() { _ = SetFailpoint("") }()
	if err := SetFailpoint("a.b:2:error"); err != nil {
		t.Fatal(err)
	}
	for visit, want := range []bool{false, true, false} {
		var fe *FailpointError
		if got := errors.As(Failpoint("a.b"), &fe); got != want || Failpoint("other") != nil {
			t.Fatalf("visit %d: %v", visit+1, got)
		}
		if FailpointHit() != (visit >= 1) {
			t.Fatalf("visit %d: hit %v", visit+1, FailpointHit())
		}
	}
	if err := SetFailpoint("a.b:1:sleep=1ms"); err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	if err := Failpoint("a.b"); err != nil || time.Since(begin) < time.Millisecond {
		t.Fatalf("%v after %s", err, time.Since(begin))
	}
	for _, bad := range []string{"a:0", "a:x", "a:1:explode", "a:1:sleep", "a:1:sleep=soon", "a:1:hold"} {
		if SetFailpoint(bad) == nil {
			t.Errorf("%q was accepted", bad)
		}
	}
}

// BenchmarkFailpoint is the cost of a point that is not armed.
func BenchmarkFailpoint(b *testing.B) {
	for b.Loop() {
		if Failpoint("a.b") != nil {
			b.Fatal()
		}
	}
}

// Goal: what a run passes can be counted, and counting makes nothing fail. Method: visit two points.
func TestCountFailpoints(t *testing.T) {
	defer func() { _ = SetFailpoint("") }()
	if FailpointVisits() != nil {
		t.Error("visits are counted before they were asked for")
	}
	CountFailpoints()
	for _, name := range []string{"a", "b", "a"} {
		if err := Failpoint(name); err != nil {
			t.Error(err)
		}
	}
	if got := FailpointVisits(); len(got) != 2 || got["a"] != 2 || got["b"] != 1 {
		t.Errorf("visits %v", got)
	}
	if err := SetFailpoint("a"); err != nil || FailpointVisits() != nil {
		t.Error("visits are counted after a point was armed", err)
	}
}
