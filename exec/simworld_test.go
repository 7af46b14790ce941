package exec

import (
	"fmt"
	"io"
	"iter"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/sql/diag"
)

// simWorld is one run: everything outside the job's process, and what is left of earlier processes.
type simWorld struct {
	simConfig
	simCounts
	r        *rand.Rand
	now      int // steps, also milliseconds of the job's clock
	target   simTarget
	kafka    simBroker
	server   simServer
	disk     *vfs.MemFS // of the machine that the job runs on
	store    simStore   // without a disk: the state directory
	owner    int        // attempt that owns the state directory
	late     []simRequest
	zombies  []*simAttempt // processes that were suspended
	attempts int
	life     int   // job started afresh so often
	splits   int   // of the source
	acked    []int // positions acked at the last barrier, for a wrong protocol
	before   int   // parallelism of the last attempt
	overrun  bool  // a suspended process initialised an id after it was replaced: what is pre-committed there is aborted
	tell     func(format string, args ...any)
}

// simRequest is on its way to the target system.
type simRequest struct {
	due     int // when it arrives
	deliver func()
}

type simCrash struct{}

// simFailure is the error of a task: the attempt ends.
type simFailure struct{ err error }

// simCounts are what a run, or many, went through.
type simCounts struct {
	configs, seeds, steps, crashes, hangs, outages, rescales, doubles, flights, scattered, rewinds, halts, overruns int
}

func (c *simCounts) add(d *simCounts) {
	for i, p := range []*int{&c.configs, &c.seeds, &c.steps, &c.crashes, &c.hangs, &c.outages, &c.rescales, &c.doubles, &c.flights, &c.scattered, &c.rewinds, &c.halts, &c.overruns} {
		*p += []int{d.configs, d.seeds, d.steps, d.crashes, d.hangs, d.outages, d.rescales, d.doubles, d.flights, d.scattered, d.rewinds, d.halts, d.overruns}[i]
	}
}

func (c *simCounts) String() string {
	return fmt.Sprintf("%d seeds, %d steps, %d crashes (%d suspended and woken later, %d power failures), %d restarts with another parallelism, %d restores of rows in flight (%d of them elsewhere), %d moments with two checkpoints to commit, %d rewinds, %d loud halts, %d because of a process that was suspended while it started",
		c.seeds, c.steps, c.crashes, c.hangs, c.outages, c.rescales, c.flights, c.scattered, c.doubles, c.rewinds, c.halts, c.overruns)
}

// simTally is the sum of configurations that run beside each other.
type simTally struct {
	mu sync.Mutex
	n  simCounts
}

func (t *simTally) add(c *simCounts) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.n.add(c)
}

func (t *simTally) String() string { return t.n.String() }

const (
	simRows    = 12 // per split
	simSplits  = 3  // at most
	simKeys    = 2  // per split
	simCrashes = 6  // then the run is let through to its end
)

// simVerdict is the outcome of a run: wrong is "" or what is wrong with the output, why is the reason of a loud halt.
type simVerdict struct {
	simCounts
	wrong, why string
}

// simulate runs a seed to its end.
func simulate(cfg simConfig, seed uint64) simVerdict { return simulateTelling(cfg, seed, nil) }

// simulateTelling is simulate; tell hears what happens.
func simulateTelling(cfg simConfig, seed uint64, tell func(format string, args ...any)) simVerdict {
	if cfg.timeout == 0 {
		cfg.timeout = simLong
	}
	if cfg.downtime == 0 {
		cfg.downtime = simShort
	}
	w := &simWorld{simConfig: cfg, r: rand.New(rand.NewPCG(seed, 1)), disk: vfs.NewMem(), acked: make([]int, simSplits), tell: tell}
	if w.seeds = 1; cfg.onDisk {
		w.disk = vfs.NewCrashableMem()
	}
	w.kafka = simBroker{w: w, ids: map[string]*simProducerID{}}
	w.server = simServer{w: w, marks: map[string]bool{}, prepared: map[string]*simPrepared{}, table: map[int]int{}}
	w.target = newSimTarget(w)
	w.splits = 1 + w.r.IntN(simSplits)
	defer func() {
		for _, z := range w.zombies {
			z.kill()
		}
	}()
	verdict := func(wrong string) simVerdict {
		w.steps = w.now
		return simVerdict{simCounts: w.simCounts, wrong: wrong}
	}
	for w.life = range max(1, cfg.lives) {
		w.afresh()
		for tries := 0; ; tries++ {
			if tries == 400 {
				return verdict("the job does not end")
			}
			a := w.start()
			if a.ended && a.err == nil {
				break
			}
			if a.ended && diag.CodeOf(a.err) == diag.Lost {
				if w.halts = 1; w.overrun {
					w.overruns = 1
				}
				v := verdict(w.judge(false))
				v.why = a.err.Error()
				return v
			}
			if a.ended {
				return verdict(a.err.Error())
			}
		}
	}
	for len(w.zombies) > 0 && w.now < 1<<20 { // what is left of the dead changes nothing any more
		w.wake(0, 1000)
		if len(w.zombies) > 0 {
			w.zombies[0].kill()
			w.zombies = w.zombies[1:]
		}
	}
	for len(w.late) > 0 {
		w.arriveLate(0)
	}
	w.now += 1000
	return verdict(w.judge(true))
}

// afresh makes an empty state directory.
func (w *simWorld) afresh() {
	w.store = simStore{w: w}
	w.before = 0
	clear(w.acked)
}

// dir is the state directory of this life.
func (w *simWorld) dir() string { return fmt.Sprintf("/job%d", w.life) }

// start runs another attempt until it dies, hangs, or ends.
func (w *simWorld) start() *simAttempt {
	w.attempts++
	a := &simAttempt{w: w, n: w.attempts, life: w.life}
	a.given = map[checkpoint.ID]bool{}
	a.lineage = fmt.Sprintf("l%d", a.n)
	next, stop := iter.Pull(func(yield func(struct{}) bool) {
		a.yield = yield
		a.ended, a.err = a.guarded()
	})
	a.resume = func() bool { _, hangs := next(); return hangs }
	a.kill = stop
	a.say("starts")
	if a.resume() {
		w.zombies = append(w.zombies, a)
	}
	for _, l := range a.locks { // that of a process that is gone is free; that of a suspended one is taken away (TakeOver)
		l.Close()
	}
	a.say("ended %t, suspended %t, error %v", a.ended, a.zombie, a.err)
	if a.ended {
		return a
	}
	if w.onDisk && w.r.IntN(3) == 0 {
		// The machine's power fails: its processes are gone, and so is what was not synced, all of it or nothing.
		for _, z := range w.zombies {
			z.kill()
		}
		w.zombies = nil
		w.disk = w.disk.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 100 * w.r.IntN(2), RNG: w.r})
		w.outages++
		a.say("the power fails")
	}
	w.now += w.r.IntN(w.downtime + 1)
	return a
}

func (w *simWorld) clock() time.Time { return time.UnixMilli(int64(w.now)) }

// delay sends a request that arrives later: soon, or long after everybody has given up waiting for it.
func (w *simWorld) delay(request func()) {
	due := w.now + w.r.IntN(15)
	if w.chance(3) {
		due += w.r.IntN(500)
	}
	w.late = append(w.late, simRequest{due, request})
}

func (w *simWorld) arriveLate(i int) {
	f := w.late[i].deliver
	w.late = slices.Delete(w.late, i, i+1)
	f()
}

// wake lets suspended process i go on for some steps.
func (w *simWorld) wake(i, steps int) {
	z := w.zombies[i]
	z.budget = steps
	z.say("wakes up for %d steps", steps)
	if !z.resume() {
		w.zombies = slices.Delete(w.zombies, i, i+1)
	}
}

// chance is true once in n times.
func (w *simWorld) chance(n int) bool { return w.r.IntN(n) == 0 }

// simAttempt is one process: one attempt of the job.
type simAttempt struct {
	simJob
	w       *simWorld
	n       int
	life    int
	lineage string
	owned   *checkpoint.Owner
	locks   []io.Closer
	zombie  bool
	budget  int // steps that a woken zombie has left
	yield   func(struct{}) bool
	resume  func() bool // runs until it hangs, which it reports, or ends
	kill    func()
	ended   bool // there is nothing to start again: the job is done, or it halted with err
	err     error
}

func (a *simAttempt) guarded() (ended bool, err error) {
	defer func() {
		switch x := recover().(type) {
		case nil, simCrash:
		case simFailure:
			err = x.err
		default:
			panic(x)
		}
	}()
	return a.run()
}

// step is a moment at which other things happen: time passes, a late request arrives, a suspended process goes on, this
// one dies or is suspended.
func (a *simAttempt) step() {
	w := a.w
	w.now++
	w.kafka.expire()
	if a.zombie {
		if a.budget--; a.budget <= 0 {
			a.hang()
		}
		return
	}
	if i := slices.IndexFunc(w.late, func(q simRequest) bool { return q.due <= w.now }); i >= 0 {
		w.arriveLate(i)
	}
	if len(w.zombies) > 0 && w.chance(8) {
		w.wake(w.r.IntN(len(w.zombies)), 1+w.r.IntN(12))
	}
	if w.crashes < simCrashes && w.chance(70) {
		w.crashes++
		if w.chance(3) && len(w.zombies) < 3 {
			w.hangs++
			a.hang()
			return
		}
		panic(simCrash{})
	}
}

// say tells who replays a run what happens.
func (a *simAttempt) say(format string, args ...any) {
	if a.w.tell != nil {
		a.w.tell("%6d attempt %d: %s", a.w.now, a.n, fmt.Sprintf(format, args...))
	}
}

// hang suspends the process until it is woken, or killed.
func (a *simAttempt) hang() {
	a.zombie = true
	if !a.yield(struct{}{}) {
		panic(simCrash{})
	}
}

// fail ends the attempt.
func (a *simAttempt) fail(format string, args ...any) {
	panic(simFailure{diag.New(diag.External, diag.Pos{}, format, args...)})
}

// owns tells whether the process still owns the state directory.
func (a *simAttempt) owns() bool { return a.w.owner == a.n || a.w.wrong == "the old owner may publish" }

func errOwned() error {
	return diag.New(diag.Conflict, diag.Pos{}, "the state directory was taken over")
}

// A row is life*100000 + split*1000 + its number; what the job makes of it has the count of the rows of its key so far
// behind that.
func (w *simWorld) row(split, n int) int { return w.life*100000 + split*1000 + n }

func rowKey(row int) int { return row/1000%100*simKeys + row%1000%simKeys }

func counted(row, count int) int { return row*100 + count }

// judge compares what a reader of the target sees with what it should; in a run that halted rows may be missing.
func (w *simWorld) judge(complete bool) string {
	seen := map[int]bool{}
	last := map[int]int{} // row, by life and key
	out := w.target.visible()
	for _, v := range out {
		row, count := v/100, v%100
		key := row/100000*1000 + rowKey(row)
		switch {
		case count != row%1000/simKeys+1:
			return fmt.Sprintf("row %d has the wrong count %d", row, count)
		case seen[row]:
			return fmt.Sprintf("row %d is visible twice", row)
		case row < last[key] && w.sink != "upsert":
			return fmt.Sprintf("row %d is visible after row %d", row, last[key])
		}
		seen[row], last[key] = true, row
	}
	if !complete {
		return ""
	}
	for w.life = range max(1, w.lives) {
		for s := range w.splits {
			for n := range simRows {
				if w.sink == "upsert" && n < simRows-simKeys {
					continue
				}
				if !seen[w.row(s, n)] {
					return fmt.Sprintf("row %d is lost", w.row(s, n))
				}
			}
		}
	}
	if w.sink == "upsert" && len(out) != w.splits*simKeys {
		return fmt.Sprintf("the wrong keys: %d", len(out))
	}
	return w.target.leftover()
}
