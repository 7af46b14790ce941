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
