package soak

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// holds is what a process holds, and how many files its state directory has. Figures that the system does not tell are 0.
func holds(t *testing.T, pid int, state string) (h held) {
	t.Helper()
	proc := fmt.Sprintf("/proc/%d", pid)
	if es, err := os.ReadDir(proc + "/fd"); err == nil {
		h.Descriptors = len(es)
	}
	if b, err := os.ReadFile(proc + "/status"); err == nil {
		for l := range strings.Lines(string(b)) {
			f := strings.Fields(l)
			switch {
			case len(f) > 1 && f[0] == "VmRSS:":
				kib, _ := strconv.ParseInt(f[1], 10, 64)
				h.Resident = kib << 10
			case len(f) > 1 && f[0] == "Threads:":
				h.Threads, _ = strconv.Atoi(f[1])
			}
		}
	}
	_ = filepath.WalkDir(state, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() { // what goes meanwhile is not there
			return nil
		}
		if info, err := d.Info(); err == nil {
			h.Files++
			h.StateBytes += info.Size()
		}
		return nil
	})
	return h
}

// figures are what must not grow, by name, and how much of a difference is none.
var figures = []struct {
	name  string
	slack float64
	of    func(s *sample) float64
	// scaled: it depends on the parallelism, so that lives are compared with others of the same one.
	scaled bool
}{
	{"descriptors of the killed job", 16, func(s *sample) float64 { return float64(s.Killed.Descriptors) }, true},
	{"memory of the killed job", 64 << 20, func(s *sample) float64 { return float64(s.Killed.Resident) }, true},
	{"files of the killed job", 64, func(s *sample) float64 { return float64(s.Killed.Files) }, true},
	{"state of the killed job", 32 << 20, func(s *sample) float64 { return float64(s.Killed.StateBytes) }, true},
	{"descriptors of the undisturbed job", 16, func(s *sample) float64 { return float64(s.Calm.Descriptors) }, false},
	{"goroutines of the undisturbed job", 16, func(s *sample) float64 { return float64(s.Calm.Goroutines) }, false},
	{"memory of the undisturbed job", 64 << 20, func(s *sample) float64 { return float64(s.Calm.Resident) }, false},
	{"files of the undisturbed job", 64, func(s *sample) float64 { return float64(s.Calm.Files) }, false},
	{"state of the undisturbed job", 32 << 20, func(s *sample) float64 { return float64(s.Calm.StateBytes) }, false},
}

// enough is how long a run must be to show growth: the state comes to its size, and files are merged for the first time.
const enough = 10 * time.Minute

// flat compares the medians of the second fifth and of the last: a tenth more is growth.
func flat(t *testing.T, samples []sample) {
	t.Helper()
	if end := samples[len(samples)-1].At; end < enough {
		t.Logf("%s are too short to tell whether something grows", end.Round(time.Second))
		return
	}
	for _, f := range figures {
		early, late := compared(samples, f.of, f.scaled)
		if late > early*1.1+f.slack {
			t.Errorf("%s: %.0f early, %.0f at the end", f.name, early, late)
		}
		t.Logf("%s: %.0f early, %.0f at the end", f.name, early, late)
	}
}

// compared are the medians of the second fifth and of the last. Scaled, each sample counts as what it is of the median of those with its
// parallelism: which parallelism a fifth happens to have makes no difference.
func compared(samples []sample, of func(*sample) float64, scaled bool) (early, late float64) {
	var all, values []float64
	same := map[int][]float64{}
	for i := range samples {
		x := of(&samples[i])
		all = append(all, x)
		same[samples[i].Parallelism] = append(same[samples[i].Parallelism], x)
	}
	usual := median(all)
	for i, x := range all {
		if m := median(same[samples[i].Parallelism]); scaled && m > 0 {
			x *= usual / m
		}
		values = append(values, x)
	}
	fifth := len(values) / 5
	return median(values[fifth : 2*fifth]), median(values[len(values)-fifth:])
}

func median(xs []float64) float64 {
	xs = slices.Sorted(slices.Values(xs))
	return xs[len(xs)/2]
}

// TestGrowthIsTold: what depends on the parallelism alone is no growth, whichever comes last; what grows by a third is.
func TestGrowthIsTold(t *testing.T) {
	for _, parallelisms := range [][]int{{2, 4, 1, 3}, {4, 2, 3, 1}, {1, 2, 3, 4}} {
		for _, growth := range []float64{0, 0.33} {
			var samples []sample
			for i := range 90 {
				s := sample{Parallelism: parallelisms[i/9%4]}
				s.Killed.Files = int(float64(300*s.Parallelism+40*(i%9)) * (1 + growth*float64(i)/90))
				samples = append(samples, s)
			}
			early, late := compared(samples, func(s *sample) float64 { return float64(s.Killed.Files) }, true)
			if grown := late > early*1.1; grown != (growth > 0) {
				t.Errorf("parallelism %v, growth %.2f: %.0f early, %.0f at the end", parallelisms, growth, early, late)
			}
		}
	}
}
