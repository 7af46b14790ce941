package exec

import (
	"flag"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
)

// The simulation of the protocol. One seed is one run: a job with sources, an exchange, counters and writers is started,
// killed, suspended and started again until it has read its input, against a target system of the model that delays,
// repeats and loses what is sent to it. Everything random comes from the seed, so that a run can be repeated.
//
// The coordinator, the restore, the gates with their alignment and their rows in flight, the files of those, what a restore with
// another parallelism makes of them, and in the configurations with a disk also the store, are the product's code. The target
// systems, the writers and committers, and the loop of a task are models: docs/exactly-once.md has the table.
//
// The oracle: what a reader of the target sees in the end is every row once, with the count that an undisturbed job would have
// given it, in order per key; and a run may stop loudly only where the configuration says so.

var (
	simSeeds = flag.Int("sim.seeds", 0, "seeds per configuration of the simulation; 0 = 10,000, those with a disk 1,500; less with -short")
	simFirst = flag.Int("sim.first", 0, "first seed")
	simSeed  = flag.Int("sim.seed", -1, "run this seed only, and say what happened")
)

// simConfig is a configuration: what the job writes to and how, and which faults there are.
type simConfig struct {
	name     string
	sink     string // txn, ahead, prepared, marker, upsert, files; wrong ones: at-least-once, open
	tv       int    // transaction.version of the broker
	scope    string // of transactions: "job" or "subtask"
	unique   bool   // transactional ids are never used again
	timeout  int    // of a transaction, in steps
	downtime int    // at most, between attempts
	two      bool   // two checkpoints at a time, as often as can be
	hasty    int    // barriers overtake: 1 = at once, 2 = after a time
	onDisk   bool   // state directory on a disk that loses what is not synced when the power fails
	lives    int    // the job is run that often from the start, under one name
	mayHalt  bool   // a loud stop is allowed
	wrong    string // the rule that is broken
}

const (
	simLong  = 1 << 30
	simShort = 40
)

var simConfigs = []simConfig{
	{name: "kafka", sink: "txn", tv: 2, scope: "job"},
	{name: "kafka-tv1", sink: "txn", tv: 1, scope: "job"},
	{name: "kafka-subtask", sink: "txn", tv: 2, scope: "subtask"},
	{name: "kafka-unique-tv1", sink: "txn", tv: 1, scope: "job", unique: true},
	{name: "kafka-unique-tv2", sink: "txn", tv: 2, scope: "job", unique: true},
	{name: "kafka-two", sink: "txn", tv: 2, scope: "job", two: true},
	{name: "kafka-timeout", sink: "txn", tv: 2, scope: "job", timeout: 150, downtime: 200, mayHalt: true},
	{name: "kafka-timeout-tv1", sink: "txn", tv: 1, scope: "job", timeout: 150, downtime: 200, mayHalt: true},
	{name: "kafka-timeout-subtask", sink: "txn", tv: 2, scope: "subtask", timeout: 150, downtime: 200, mayHalt: true},
	{name: "kafka-ahead", sink: "ahead", tv: 2, lives: 2},
	{name: "kafka-ahead-tv1", sink: "ahead", tv: 1, lives: 2},
	{name: "postgres-prepared", sink: "prepared", lives: 2},
	{name: "postgres-ahead", sink: "marker", lives: 2},
	{name: "postgres-two", sink: "marker", two: true},
	{name: "postgres-upsert", sink: "upsert"},
	{name: "unaligned", sink: "txn", tv: 2, scope: "job", hasty: 1},
	{name: "unaligned-ahead", sink: "marker", hasty: 1},
	{name: "aligned-timeout", sink: "marker", hasty: 2},
	{name: "files", sink: "files", onDisk: true},
	{name: "files-unaligned", sink: "files", onDisk: true, hasty: 1},
}

func simNamed(t *testing.T, name string) simConfig {
	i := slices.IndexFunc(simConfigs, func(c simConfig) bool { return c.name == name })
	if i < 0 {
		t.Fatalf("no configuration %q", name)
	}
	return simConfigs[i]
}

func (c simConfig) number() int {
	n := *simSeeds
	if n == 0 {
		if n = 10000; c.onDisk {
			n = 1500
		}
		if testing.Short() {
			n /= 50
		}
	}
	return n
}

// TestSimulation: no row is lost, none comes twice, none has a wrong count, in any seed of any configuration.
func TestSimulation(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(800)) // small runs, all garbage
	var all simTally
	t.Run("configurations", func(t *testing.T) {
		for _, cfg := range simConfigs {
			t.Run(cfg.name, func(t *testing.T) {
				t.Parallel()
				simRun(t, cfg, &all)
			})
		}
	})
	if t.Failed() || *simSeed >= 0 {
		return
	}
	t.Logf("%d configurations: %s; 0 lost, 0 duplicated, 0 wrong, 0 out of order", all.n.configs, all.String())
	if *simSeeds == 0 && !testing.Short() && all.n.crashes < 30000 && len(simConfigs) == all.n.configs {
		t.Errorf("%d crashes: the simulation tries too little", all.n.crashes)
	}
}

func simRun(t *testing.T, cfg simConfig, all *simTally) {
	seeds, first := cfg.number(), *simFirst
	if *simSeed >= 0 {
		seeds, first = 1, *simSeed
	}
	var sum simCounts
	for i := range seeds {
		seed := uint64(first + i)
		var tell func(string, ...any)
		if *simSeed >= 0 {
			tell = t.Logf
		}
		v := simulateTelling(cfg, seed, tell)
		if v.wrong == "" && v.halts > v.overruns && !cfg.mayHalt {
			v.wrong = "halted: " + v.why
		}
		if v.wrong != "" {
			t.Fatalf("seed %d: %s (repeat with: go test ./exec -run 'TestSimulation/configurations/%s$' -sim.seed=%d -v)", seed, v.wrong, cfg.name, seed)
		}
		sum.add(&v.simCounts)
	}
	sum.configs = 1
	all.add(&sum)
	t.Log(sum.String())
	if *simSeed >= 0 {
		return
	}
	for what, n := range map[string]int{"crashes": sum.crashes, "suspended processes": sum.hangs, "restarts with another parallelism": sum.rescales} {
		if n < seeds/2 {
			t.Errorf("only %d %s in %d seeds", n, what, seeds)
		}
	}
	if cfg.two && sum.doubles < seeds/4 {
		t.Errorf("only %d moments with two checkpoints to commit", sum.doubles)
	}
	if cfg.hasty > 0 && (sum.flights < seeds/4 || sum.scattered < seeds/20) {
		t.Errorf("rows in flight were restored only %d times, to another parallelism %d times", sum.flights, sum.scattered)
	}
	if !cfg.mayHalt && sum.overruns > 2+seeds/100 {
		t.Errorf("%d runs halted because of a process that was suspended while it started", sum.overruns)
	}
	if cfg.onDisk && sum.outages < seeds/4 {
		t.Errorf("only %d power failures", sum.outages)
	}
	if cfg.mayHalt && (sum.halts == 0 || sum.rewinds == 0) {
		t.Errorf("%d halts, %d rewinds: transactions should time out", sum.halts, sum.rewinds)
	}
}

// simMutations are known-wrong protocols: the rule that is broken, in which configuration, and what a reader sees of it.
var simMutations = []struct{ rule, config, sink, sees string }{
	// The twelve of the failure catalogue.
	{rule: "at-least-once", config: "postgres-ahead", sink: "at-least-once", sees: "twice"},
	{rule: "commit before completion", config: "kafka", sees: "twice"},
	{rule: "transaction id not in the checkpoint", config: "kafka", sees: "lost"},
	{rule: "commit is not idempotent", config: "postgres-ahead", sees: "twice"},
	{rule: "no marker row", config: "kafka-ahead", sees: "twice"},
	{rule: "marker without lineage", config: "postgres-ahead", sees: "lost"},
	{rule: "progress read before fencing", config: "kafka-ahead", sees: "twice"},
	{rule: "pooled ids without re-init", config: "kafka-tv1", sees: "twice"},
	{rule: "fenced counts as committed", config: "kafka-timeout", sees: "lost"},
	{rule: "plain open transaction", config: "postgres-prepared", sink: "open", sees: "lost"},
	{rule: "resume from the acked position", config: "kafka", sees: "lost"},
	{rule: "rows in flight are not in the checkpoint", config: "unaligned", sees: "lost"},
	// Alignment.
	{rule: "barriers do not align", config: "postgres-ahead", sees: "wrong count"},
	{rule: "what arrives after the barrier passed is not recorded", config: "unaligned-ahead", sees: "lost"},
	{rule: "rows in flight stay with their old subtask", config: "unaligned-ahead", sees: "wrong count"},
	// The order of a restore, and what a coordinator must remember.
	{rule: "committables are not carried", config: "kafka", sees: "lost"},
	{rule: "a declined snapshot's committables are dropped", config: "kafka", sees: "lost"},
	{rule: "abort before commit", config: "kafka", sees: "halted"},
	{rule: "confirm before commit", config: "kafka", sees: "lost"},
	{rule: "the newest is committed first", config: "postgres-two", sees: "after"},
	{rule: "writers are not fenced", config: "postgres-upsert", sees: "lost"},
	{rule: "the old owner may publish", config: "kafka", sees: ""},
	// Disk.
	{rule: "the directory is not synced", config: "files", sees: "lost"},
	{rule: "the file is not synced", config: "files", sees: ""},
}

// TestSimulationCatchesWrongProtocols: the simulation can fail. Each known-wrong protocol is caught within 1,000 seeds, and what
// the reader sees of it at least once is what the rule is there to prevent.
func TestSimulationCatchesWrongProtocols(t *testing.T) {
	for _, m := range simMutations {
		t.Run(m.rule, func(t *testing.T) {
			t.Parallel()
			cfg := simNamed(t, m.config)
			if cfg.wrong = m.rule; m.sink != "" {
				cfg.sink = m.sink
			}
			var seen []string
			for seed := range uint64(1000) {
				v := simulate(cfg, seed)
				if v.wrong == "" && v.halts > v.overruns && !cfg.mayHalt {
					v.wrong = "halted: " + v.why
				}
				if v.wrong == "" {
					continue
				}
				if seen = append(seen, fmt.Sprintf("seed %d: %s", seed, v.wrong)); strings.Contains(v.wrong, m.sees) {
					t.Log(seen[len(seen)-1])
					return
				}
			}
			t.Fatalf("not caught in 1,000 seeds as %q; caught were %d, of them %q", m.sees, len(seen), seen[:min(3, len(seen))])
		})
	}
}

// TestSimulationRepeats: a seed is a run. Its second run takes the same steps to the same output.
func TestSimulationRepeats(t *testing.T) {
	for _, cfg := range simConfigs {
		for seed := range uint64(5) {
			if a, b := simulate(cfg, seed), simulate(cfg, seed); a != b {
				t.Errorf("%s, seed %d: %+v, and again %+v", cfg.name, seed, a, b)
			}
		}
	}
}
