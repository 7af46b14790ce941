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
}{
	{"descriptors of the killed job", 16, func(s *sample) float64 { return float64(s.Killed.Descriptors) }},
	{"memory of the killed job", 64 << 20, func(s *sample) float64 { return float64(s.Killed.Resident) }},
	{"files of the killed job", 64, func(s *sample) float64 { return float64(s.Killed.Files) }},
	{"state of the killed job", 32 << 20, func(s *sample) float64 { return float64(s.Killed.StateBytes) }},
	{"descriptors of the undisturbed job", 16, func(s *sample) float64 { return float64(s.Calm.Descriptors) }},
	{"goroutines of the undisturbed job", 16, func(s *sample) float64 { return float64(s.Calm.Goroutines) }},
	{"memory of the undisturbed job", 64 << 20, func(s *sample) float64 { return float64(s.Calm.Resident) }},
	{"files of the undisturbed job", 64, func(s *sample) float64 { return float64(s.Calm.Files) }},
	{"state of the undisturbed job", 32 << 20, func(s *sample) float64 { return float64(s.Calm.StateBytes) }},
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
	fifth := len(samples) / 5
	for _, f := range figures {
		median := func(part []sample) float64 {
			var xs []float64
			for i := range part {
				xs = append(xs, f.of(&part[i]))
			}
			slices.Sort(xs)
			return xs[len(xs)/2]
		}
		early, late := median(samples[fifth:2*fifth]), median(samples[len(samples)-fifth:])
		if late > early*1.1+f.slack {
			t.Errorf("%s: %.0f early, %.0f at the end", f.name, early, late)
		}
		t.Logf("%s: %.0f early, %.0f at the end", f.name, early, late)
	}
}
