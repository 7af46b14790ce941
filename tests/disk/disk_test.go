package disk

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/streamsql/streamsql/sql/diag"
)

// FaultsEnv names the environment variable with the number of faults that the job has to live with; make disk sets it. SeedEnv
// is the one with the seed of a run to repeat.
const (
	FaultsEnv = "STREAMSQL_TEST_DISK_FAULTS"
	SeedEnv   = "STREAMSQL_TEST_DISK_SEED"
)

// Goal: whatever a disk does to a job, its output is exact when it has come to its end, or it stops, says which
// operation on which file failed, and is exact once the disk is well again. It never shows a wrong row, and never panics.
// Method: jobs from files to files, in this process, on a file system that fails as a seed says, or is cut off; or whose
// files are damaged between two starts. Every output file is read as soon as it is visible.
func TestDiskFaults(t *testing.T) {
	tally := tally{}
	if s := os.Getenv(SeedEnv); s != "" {
		one(t, number(t, SeedEnv, s), tally)
		t.Log("\n" + tally.String())
		return
	}
	want := 100
	if testing.Short() {
		want = 10
	}
	if s := os.Getenv(FaultsEnv); s != "" {
		want = int(number(t, FaultsEnv, s))
	}
	seed := uint64(1)
	for ; tally.faults() < want && !t.Failed(); seed++ {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) { one(t, seed, tally) })
	}
	t.Logf("%d jobs\n%s", seed-1, tally)
}

func number(t *testing.T, name, s string) uint64 {
	n, err := strconv.ParseUint(s, 10, 64)
	if err != nil || n == 0 {
		t.Fatalf("$%s is %q, want a number", name, s)
	}
	return n
}

// one lets the job of a seed live through its faults.
func one(t *testing.T, seed uint64, tally tally) {
	switch seed % 4 {
	case 0, 1:
		operations(newRun(t, seed, seed%8 < 4), tally)
	case 2:
		powerCuts(newRun(t, seed, true), tally)
	case 3:
		if seed%16 == 15 {
			savepointFaults(newRun(t, seed, false), tally)
		} else {
			damagedFiles(newRun(t, seed, false), tally)
		}
	}
}

// What becomes of a job that meets a fault.
const (
	unharmed  = "unharmed"       // no restart, no checkpoint given up
	restarted = "restarted"      // in the same process
	stopped   = "stopped, again" // the process named the fault and ended; the next one went on
	exact     = "went on"        // a damage that was not in the way, or from a copy, or from an older checkpoint
	refused   = "refused"        // the job named the file and did not start until it was put back
)

var outcomes = []string{unharmed, restarted, stopped, exact, refused}

// tally counts faults by what they were and what became of the job.
type tally map[string]map[string]int

func (y tally) add(what, outcome string) {
	if y[what] == nil {
		y[what] = map[string]int{}
	}
	y[what][outcome]++
}

func (y tally) faults() (n int) {
	for _, m := range y {
		for _, c := range m {
			n += c
		}
	}
	return n
}

// String is a table.
func (y tally) String() string {
	var b strings.Builder
	b.WriteString("| fault | number | " + strings.Join(outcomes, " | ") + " |\n|---" + strings.Repeat("|---:", len(outcomes)+1) + "|\n")
	sums := map[string]int{}
	row := func(name string, m map[string]int) {
		n := 0
		cells := ""
		for _, o := range outcomes {
			n += m[o]
			sums[o] += m[o]
			cells += fmt.Sprintf(" %d |", m[o])
		}
		fmt.Fprintf(&b, "| %s | %d |%s\n", name, n, cells)
	}
	for _, what := range slices.Sorted(maps.Keys(y)) {
		row(what, y[what])
	}
	row("all", maps.Clone(sums))
	return b.String()
}

// faultsOf are what can happen to an operation.
var faultsOf = map[string][]string{
	opOpen: {fails}, opCreate: {fails, noRun, full}, opRead: {fails}, opWrite: {fails, noRun, short, full}, opSync: {fails, noRun, slow},
	opLink: {fails, noRun}, opRename: {fails}, opRemove: {fails}, opMkdir: {fails, noRun}, opList: {fails}, opStat: {fails},
}

// kindsOf are the kinds of files that an operation is seen on.
var kindsOf = map[string][]string{
	opOpen:   {manifests, segments, pebbles, notes, pendings, inputs, objects, directories},
	opCreate: {manifests, segments, pebbles, colds, notes, traces, objects, progresses},
	opRead:   {manifests, segments, pebbles, colds, notes, traces, pendings, objects, inputs},
	opWrite:  {manifests, segments, pebbles, colds, notes, traces, objects, progresses},
	opSync:   {manifests, segments, pebbles, notes, progresses, objects, directories},
	opLink:   {segments, pebbles, objects, outputs},
	opRename: {manifests, notes, traces, objects, pendings},
	opRemove: {segments, pebbles, pendings, directories},
	opMkdir:  {directories},
	opList:   {objects, directories},
	opStat:   {manifests, segments, pendings, inputs, directories},
}

func (r *run) fault() *fault {
	ops := slices.Sorted(maps.Keys(faultsOf))
	op := ops[r.rnd.IntN(len(ops))]
	f := &fault{op: op, kind: kindsOf[op][r.rnd.IntN(len(kindsOf[op]))], what: faultsOf[op][r.rnd.IntN(len(faultsOf[op]))],
		after: r.rnd.IntN(1 + r.rnd.IntN(12)), left: 1 + r.rnd.IntN(40)}
	if f.kind == colds || f.kind == pebbles {
		f.after = r.rnd.IntN(3)
	}
	return f
}

// note counts the faults of a process.
func (r *run) note(tally tally, out process) {
	outcome := unharmed
	switch {
	case out.err != nil:
		outcome = stopped
	case out.restarts > 0 || out.givenUp > 0:
		outcome = restarted
	}
	for _, f := range r.v.happened() {
		tally.add(f.op+": "+f.what+" | "+f.kind, outcome)
	}
}

// operations makes a few operations fail in each process, until the disk is well.
func operations(r *run, tally tally) {
	r.t.Helper()
	if r.rnd.IntN(4) == 0 {
		r.elsewhere()
	}
	if r.rnd.IntN(8) == 0 && r.inMemory && os.Getenv(FaultsEnv) != "" {
		// Some syncs take longer than a checkpoint may.
		r.settings["execution.checkpointing.timeout"] = "2 s"
		r.settings["execution.checkpointing.tolerable-failed-checkpoints"] = "5"
		r.v.nap = 3 * time.Second
	}
	for lives := 1 + r.rnd.IntN(2); ; lives-- {
		for range 2 + r.rnd.IntN(4) {
			if lives > 0 {
				r.v.plan = append(r.v.plan, r.fault())
			}
		}
		// In the last of the processes with faults some input is left for one without.
		p := plan{}
		if lives > 0 && r.rnd.IntN(2) == 0 {
			p.pauseAt = 2 + r.rnd.IntN(3)
		}
		out := r.process(p)
		r.noPanic()
		r.note(tally, out)
		if out.err != nil {
			if lives <= 0 {
				r.failf("the job does not go on with a disk that is well: %v", out.err)
			}
			r.clean(out.err)
		}
		healthy := len(r.v.happened()) == 0
		r.v.heal()
		if out.done || r.ended() {
			r.finished(healthy && out.done)
			return
		}
	}
}

// powerCuts cuts the power a few times, also in the middle of a restore.
func powerCuts(r *run, tally tally) {
	r.t.Helper()
	if r.rnd.IntN(4) == 0 {
		r.elsewhere()
	}
	for cuts := 1 + r.rnd.IntN(3); ; cuts-- {
		if cuts > 0 {
			r.v.dieAt = 1 + r.rnd.IntN(1+r.rnd.IntN(400))
			r.v.spare = r.rnd.IntN(3) == 0 // only killed: the next process finds what is not durable yet
		}
		out := r.process(plan{})
		r.noPanic()
		if !out.cut || out.done {
			if out.err != nil {
				r.failf("the job does not go on after a power cut: %v", out.err)
			}
			r.finished(true)
			return
		}
		if !r.v.spare {
			tally.add("power cut", exact)
		}
		r.repower()
		if r.ended() {
			r.finished(false)
			return
		}
		r.forget()
		if r.look(); r.bad != "" {
			r.failf("after a power cut: %s", r.bad)
		}
	}
}

// damagedFiles kills the job and damages a file, a few times.
func damagedFiles(r *run, tally tally) {
	r.t.Helper()
	kinds := []string{manifests, segments, segments, pebbles, pebbles, colds, notes, traces, progresses, pendings, pendings}
	residue := true
	for harms := 2 + r.rnd.IntN(3); ; harms-- {
		p := plan{}
		switch {
		case harms <= 0:
		case r.rnd.IntN(3) == 0:
			p.pauseAt = 1 + r.rnd.IntN(files-1)
		default:
			r.v.dieAt = 20 + r.rnd.IntN(300)
		}
		out := r.process(p)
		r.noPanic()
		if out.err != nil && !out.cut {
			r.failf("the job fails on a disk that is well: %v", out.err)
		}
		if out.done {
			r.finished(residue)
			return
		}
		r.repower()
		if r.ended() {
			r.finished(false)
			return
		}
		if harms <= 0 {
			continue
		}
		x := r.harm(".", kinds[r.rnd.IntN(len(kinds))])
		if x == nil {
			continue
		}
		if x.kind == notes && x.gone {
			residue = false // nobody knows of a run that came to no checkpoint, and of what it left open
		}
		r.restart(x, plan{pauseAt: files}, tally)
	}
}

// restart starts the job with a damaged file. It goes on, or says so and goes on when the file is put back.
func (r *run) restart(x *damage, p plan, tally tally) {
	r.t.Helper()
	out := r.process(p)
	r.noPanic()
	r.forget()
	if r.look(); r.bad != "" {
		r.failf("%s %s (%s): wrong row %s", x.path, x.what, x.kind, r.bad)
	}
	if out.err == nil {
		tally.add(x.what+" | "+x.kind, exact)
		return
	}
	if !x.vital() {
		r.failf("%s %s (%s): the job need not refuse: %v", x.path, x.what, x.kind, out.err)
	}
	if code := diag.CodeOf(out.err); code == diag.Internal || !r.blames(out.err.Error(), x) {
		r.failf("%s %s (%s): the error does not say so: %v", x.path, x.what, x.kind, out.err)
	}
	tally.add(x.what+" | "+x.kind, refused)
	if err := x.repair(); err != nil {
		r.failf("%s %s (%s): the file cannot be put back: %v", x.path, x.what, x.kind, err)
	}
	if out := r.process(p); out.err != nil {
		r.failf("%s %s (%s): the file was put back, and the job does not start: %v", x.path, x.what, x.kind, out.err)
	}
}

// blames tells whether the text of an error names the damaged file, by itself or by the directory of its checkpoint.
func (r *run) blames(text string, x *damage) bool {
	base := x.path[strings.LastIndexByte(x.path, '/')+1:]
	if strings.HasPrefix(base, ".") { // a pending file has its visible name in it
		base, _, _ = strings.Cut(base[1:], ".pending.")
	}
	return strings.Contains(text, base)
}

// savepointFaults takes savepoints while operations fail, and starts from one whose files are damaged.
func savepointFaults(r *run, tally tally) {
	r.t.Helper()
	into := r.root + "/save/one"
	for range 3 {
		f := r.fault()
		if f.kind == manifests || f.kind == segments {
			f.kind = savepoints
		}
		f.after = r.rnd.IntN(3)
		r.v.plan = append(r.v.plan, f)
	}
	out := r.process(plan{saveAt: 2, stopAt: 3, into: into})
	r.noPanic()
	r.note(tally, out)
	for out.err != nil {
		r.clean(out.err)
		r.v.heal()
		into += "."
		out = r.process(plan{stopAt: r.given + 1, into: into})
	}
	r.v.heal()
	if !out.saved {
		r.finished(true)
		return
	}
	x := r.harm(strings.TrimPrefix(into, r.root), savepoints)
	// The old job is gone with its directory.
	if err := os.RemoveAll(r.root + "/state"); err != nil {
		r.t.Fatal(err)
	}
	if err := os.Mkdir(r.root+"/state", 0o755); err != nil {
		r.t.Fatal(err)
	}
	r.restore = into
	r.restart(x, plan{}, tally)
	r.finished(true)
}

func (r *run) noPanic() {
	r.t.Helper()
	if strings.Contains(r.log.text(), "panic") {
		r.failf("a panic")
	}
}
