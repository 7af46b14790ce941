package chaos

import (
	"maps"
	"math/rand/v2"
	"slices"
	"time"
)

// trial is one run of the jobs with faults of one kind. It is a function of the seed and its number, but for times, which are
// fractions of what a run without faults took.
type trial struct {
	n           int
	kind        string
	parallelism int // at the start
	faults      []fault
}

// fault is one injury.
type fault struct {
	at          float64       // when, as a fraction of the time that is left to the process
	point       string        // Failpoint
	hit         int64         // Failpoint: the visit that kills
	hold        time.Duration // Disk: how long; Pause: how long the other process works before this one wakes
	late        bool          // Pause: this one wakes when the other has ended; ReadOnly: at a start; Savepoint: killed meanwhile
	fresh       bool          // Savepoint: the next process has a new state directory
	parallelism int           // of the next process
	jump        time.Duration // Clock
	seed        uint64        // Network: of which server's connections meet what; Server: of the command
}

func (f *fault) rand() *rand.Rand { return rand.New(rand.NewPCG(f.seed, 0)) }

// most is the highest parallelism that trials use.
const most = 4

// schedule plans the trials. visits are how often a run without faults passes each failpoint.
func schedule(seed uint64, kinds []string, faults int, visits map[string]int64) []trial {
	points := slices.Sorted(maps.Keys(visits))
	if len(points) == 0 {
		kinds = without(kinds, Failpoint)
	}
	var out []trial
	for left := faults; left > 0 && len(kinds) > 0; {
		n := len(out) + 1
		rnd := rand.New(rand.NewPCG(seed, uint64(n)))
		t := trial{n: n, kind: kinds[(n-1)%len(kinds)], parallelism: 1 + rnd.IntN(2)}
		injuries := min(left, 1+rnd.IntN(2))
		switch t.kind {
		case Pause, Disk, ReadOnly, Server, Network:
			injuries = 1 // the process that was spared goes on to the end
		}
		for i := range injuries {
			f := fault{at: 0.1 + 0.7*rnd.Float64(), parallelism: t.parallelism}
			switch t.kind {
			case Failpoint:
				f.point = points[rnd.IntN(len(points))]
				// A later process passes the point less often, since part of the work is done.
				f.hit = 1 + int64(rnd.Float64()*float64(visits[f.point]/int64(i+2)))
			case Rescale:
				f.parallelism = 1 + rnd.IntN(most)
				if f.parallelism == t.parallelism {
					f.parallelism = f.parallelism%most + 1
				}
			case Pause:
				f.hold, f.late = time.Duration(rnd.IntN(800))*time.Millisecond, rnd.IntN(3) == 0
			case Savepoint:
				f.parallelism = 1 + rnd.IntN(most)
				f.fresh, f.late = rnd.IntN(2) == 0, rnd.IntN(4) == 0
				f.hold = time.Duration(rnd.IntN(150)) * time.Millisecond
			case Network, Server:
				f.seed = rnd.Uint64()
			case Disk:
				f.hold = time.Duration(100+rnd.IntN(900)) * time.Millisecond
			case ReadOnly:
				f.hold, f.late = time.Duration(100+rnd.IntN(2900))*time.Millisecond, rnd.IntN(3) == 0
			case Clock:
				f.jump = time.Duration(1+rnd.IntN(120)) * time.Minute
				if rnd.IntN(2) == 0 {
					f.jump = -f.jump
				}
			}
			t.faults = append(t.faults, f)
		}
		left -= injuries
		out = append(out, t)
	}
	return out
}
