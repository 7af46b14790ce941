package crash

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/streamsql/streamsql/tests/harness"
)

// Goal: servers that die and come back in the middle of a job cost nothing but time. Method: servers of the test's own
// are killed with SIGKILL while the job writes, and started again; the job is never touched.

func TestKafkaBrokerIsKilledAndRestarted(t *testing.T) {
	t.Parallel()
	k := harness.Kafka(t)
	outlives(t, setup{k: k, sinks: "kapwf"}, k, (*fixture).countP)
}

func TestPostgresIsKilledAndRestarted(t *testing.T) {
	t.Parallel()
	// Without fsync a killed server keeps its files: the operating system lives on.
	pg := harness.Postgres(t)
	outlives(t, setup{pg: pg, sinks: "kpwuf"}, pg, (*fixture).countK)
}

// server is a broker or a database of the test's own.
type server interface {
	Kill()
	Restart() error
}

// outlives kills the server twice, or as often as make crash-servers says, whenever a job has committed more rows, which it
// counts at the other server; and looks at what the job leaves. A job that comes to its end before is followed by another one.
func outlives(t *testing.T, s setup, dies server, committed func(*fixture) int) {
	kills := harness.ServerCrashes(t, 2)
	s.rate = usualRate
	if kills > 2 {
		s.rows, s.rate = 2*rows, 200 // lasts for some ten kills
	}
	r := rand.New(rand.NewPCG(uint64(harness.Day(t)), 5))
	done, jobs, sum := 0, 0, findings{}
	for ; done < kills && !t.Failed(); jobs++ {
		f := newFixtureWith(t, s)
		p := f.start("")
		for next := fromKafka; done < kills; done++ {
			if !f.either(p, "the job commits", func() bool { return committed(f) >= next }) {
				break
			}
			time.Sleep(time.Duration(r.IntN(100)) * time.Millisecond) // anywhere in a checkpoint; nothing depends on it
			dies.Kill()
			if err := dies.Restart(); err != nil {
				t.Fatal(err)
			}
			next = committed(f) + 1 + r.IntN(usualRate)
		}
		f.wait(p)
		found := f.check(f.rows)
		sum.lost, sum.repeated, sum.wrong, sum.residue = sum.lost+found.lost, sum.repeated+found.repeated, sum.wrong+found.wrong, sum.residue+found.residue
	}
	t.Logf("%d kills of the server below %d jobs: %d rows lost, %d too many, %d wrong sums, %d left undecided", done, jobs, sum.lost, sum.repeated, sum.wrong, sum.residue)
}
