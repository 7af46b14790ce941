package crash

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/streamsql/streamsql/tests/harness"
	"github.com/streamsql/streamsql/tests/jobstate"
)

// Goal: a table that says of every sink, with barriers that wait and with barriers that overtake, how often the job was killed
// with SIGKILL, and that no row was lost, none came twice, and nothing was left undecided. Method: the job of unaligned_test.go
// with that sink; where barriers overtake, beside a slow one that keeps rows in flight. It is killed at every point of the
// protocol and of the sink, and at random moments, and goes on at another parallelism; what its lives leave together is looked at.

// matrixSink is a row of the matrix.
type matrixSink struct {
	name string
	sink string // of pressedJob
	tv   int    // transaction.version of the broker
	// points are the sink's own. Each is passed in every checkpoint with rows.
	points []string
	staged bool // output waits for its checkpoint's commit
}

var matrixSinks = []matrixSink{
	{"kafka, 2PC, TV2", "k", 2, kafkaPoints, true},
	{"kafka, 2PC, TV1", "k", 1, kafkaPoints, true},
	{"kafka, write-ahead", "a", 2, []string{"kafka.precommit.after", "kafka.commit.before", "kafka.ahead.flushed", "kafka.commit.during", "kafka.commit.after"}, true},
	{"postgres, prepared", "p", 2, postgresPoints, true},
	{"postgres, write-ahead", "w", 2, postgresPoints, true},
	{"postgres, keyed write-ahead", "v", 2, postgresPoints, true},
	{"postgres, upsert", "u", 2, []string{"postgres.precommit.before", "postgres.precommit.after"}, false},
	{"files", "f", 2, []string{"file.precommit.synced", "file.precommit.renamed", "file.commit.linked"}, true},
}

var (
	kafkaPoints = []string{"kafka.precommit.before", "kafka.precommit.after", "kafka.commit.before", "kafka.commit.during", "kafka.commit.after"}

	postgresPoints = []string{"postgres.precommit.before", "postgres.precommit.after", "postgres.commit.before", "postgres.commit.during", "postgres.commit.after"}

	// matrixPoints are those of the executor, whatever the sinks.
	matrixPoints = []string{"source.poll", "barrier.inject", "precommit.before", "precommit.after", "publish.before", "publish.after",
		"commit.before", "commit.after", "confirm.after"}
)

// cell is a sink and a kind of barriers, with what was found. Its numbers are guarded by mu.
type cell struct {
	matrixSink
	unaligned bool

	mu                      sync.Mutex
	kills, random, inFlight int // all; those at random moments; those whose newest checkpoint held rows in flight
	starts, jobs            int
	findings
}

func (c *cell) barriers() string {
	if c.unaligned {
		return "unaligned"
	}
	return "aligned"
}

// atRandom stands for a kill at a random moment instead of a point.
const atRandom = ""

// wanted are the kills that the whole matrix asks for in the cell: every point at its first and at its third visit, each point of a
// restore twice in a row, and some at random moments.
func (c *cell) wanted() (out [][]string) {
	points := slices.Concat(matrixPoints, c.points)
	if c.unaligned {
		points = append(points, "inflight.write")
		if c.staged && c.sink != "p" {
			points = append(points, "commit.during") // between its commit and that of the slow sink
		}
	}
	for _, p := range visits(points, "", ":3") {
		out = append(out, []string{p})
	}
	for _, p := range []string{"restore.begin", "restore.committed", "restore.aborted"} {
		out = append(out, twiceInRestore([]string{p}))
	}
	for range 6 {
		out = append(out, []string{atRandom})
	}
	return out
}

// Rows of the job: where barriers overtake most are in Kafka and wait in front of the slow sink, else most come at a pace.
const (
	matrixRows = 40_000
	matrixRate = 1000
	// slowly is for a tenth of the rows: enough rows for half a dozen lives of a second.
	slowly = 0.003
)

func (c *cell) newFixture(t *testing.T, k *harness.Broker) *fixture {
	s, now := setup{k: k, sinks: c.sink, rows: matrixRows}, 2000
	if c.unaligned {
		now = 30_000
		if c.sink != "p" {
			s.sinks += "p"
		}
	}
	f := newPressed(t, s, now)
	if !c.unaligned {
		f.slow(0)
	} else {
		f.slow(slowly)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.jobs++
	return f
}

// survives runs jobs of the cell until all kills were done.
func (c *cell) survives(t *testing.T, k *harness.Broker, r *rand.Rand, kills []string) {
	for tries := 0; len(kills) > 0; {
		f, ended := c.newFixture(t, k), false
		for len(kills) > 0 && !ended {
			f.press(c.unaligned, 2+r.IntN(3), matrixRate)
			died := c.kill(f, r, kills[0])
			if ended = !died || jobstate.Ended(t, f.state); died {
				kills, tries = kills[1:], 0
			} else if tries++; tries == 5 {
				t.Fatalf("%d jobs came to their end without passing %s", tries, kills[0])
			}
		}
		if !ended {
			f.slow(0)
			f.press(r.IntN(2) == 0, 1+r.IntN(4), 10_000_000)
			c.mu.Lock()
			c.starts++
			c.mu.Unlock()
			f.wait(f.start(""))
		}
		found := f.checkPressed()
		c.mu.Lock()
		c.lost, c.repeated, c.wrong, c.residue = c.lost+found.lost, c.repeated+found.repeated, c.wrong+found.wrong, c.residue+found.residue
		c.mu.Unlock()
		if t.Failed() {
			return
		}
	}
}

// kill starts the job and reports whether it was killed, at a point or at a random moment; otherwise it came to its end.
func (c *cell) kill(f *fixture, r *rand.Rand, point string) bool {
	f.t.Helper()
	p := f.start(point)
	if point == atRandom {
		before := f.newest()
		f.either(p, "a checkpoint is complete", func() bool {
			x := f.newest()
			return x != nil && (before == nil || x.ID > before.ID)
		})
		time.Sleep(time.Duration(r.IntN(300)) * time.Millisecond) // anywhere in a few checkpoints; nothing depends on it
		p.Kill()
	}
	code, err := p.Wait(patience)
	if err != nil || code != 0 && code != -1 {
		f.t.Fatalf("%q: exit %d, %v\n%s", point, code, err, p.Output())
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.starts++; code != -1 {
		return false
	}
	if c.kills++; point == atRandom {
		c.random++
	}
	if x := f.newest(); x != nil && x.InFlight > 0 {
		c.inFlight++
	}
	return true
}

// TestCrashMatrix kills once in each cell, elsewhere every day; make crash runs the whole matrix and prints it.
func TestCrashMatrix(t *testing.T) {
	t.Parallel()
	seed := uint64(harness.Day(t))
	whole := harness.Crashes(t, 0) > 0
	if whole {
		seed = uint64(time.Now().UnixNano())
	}
	t.Logf("seed %d", seed)
	shared, tv1 := harness.SharedKafka(t), harness.Kafka(t, harness.KafkaTransactionVersion(1))
	if is := tv1.TransactionVersion(t); is != 1 {
		t.Fatalf("transaction.version is %d", is)
	}
	var cells []*cell
	for _, s := range matrixSinks {
		cells = append(cells, &cell{matrixSink: s}, &cell{matrixSink: s, unaligned: true})
	}
	t.Run("cells", func(t *testing.T) {
		for i, c := range cells {
			k, r := shared, rand.New(rand.NewPCG(seed, uint64(i)))
			if c.tv == 1 {
				k = tv1
			}
			wanted := c.wanted()
			r.Shuffle(len(wanted), func(i, j int) { wanted[i], wanted[j] = wanted[j], wanted[i] })
			if !whole {
				wanted = wanted[:1]
			}
			for n := 0; len(wanted) > 0; n++ {
				part := wanted[:min(5, len(wanted))]
				wanted = wanted[len(part):]
				r := rand.New(rand.NewPCG(r.Uint64(), 0))
				t.Run(fmt.Sprintf("%s/%s/%d", c.name, c.barriers(), n), func(t *testing.T) {
					t.Parallel()
					t.Logf("kills at %q", part)
					c.survives(t, k, r, slices.Concat(part...))
				})
			}
		}
	})
	t.Logf("\n%s", table(cells))
	for _, c := range cells {
		if whole && c.unaligned && c.inFlight == 0 {
			t.Errorf("%s: no checkpoint held rows in flight", c.name)
		}
	}
}

// table is what was found, as docs/exactly-once.md shows it.
func table(cells []*cell) string {
	var b strings.Builder
	fmt.Fprintf(&b, "| sink | barriers | jobs | kills | of them at random | from rows in flight | restarts | lost | duplicated | wrong state | residue |\n|%s\n", strings.Repeat("---|", 11))
	sum := cell{}
	for _, c := range cells {
		c.row(&b, c.name, c.barriers())
		sum.jobs, sum.kills, sum.random, sum.inFlight, sum.starts = sum.jobs+c.jobs, sum.kills+c.kills, sum.random+c.random, sum.inFlight+c.inFlight, sum.starts+c.starts
		sum.lost, sum.repeated, sum.wrong, sum.residue = sum.lost+c.lost, sum.repeated+c.repeated, sum.wrong+c.wrong, sum.residue+c.residue
	}
	sum.row(&b, "all", "")
	return b.String()
}

func (c *cell) row(b *strings.Builder, name, barriers string) {
	fmt.Fprintf(b, "| %s | %s | %d | %d | %d | %d | %d | %d | %d | %d | %d |\n", name, barriers, c.jobs, c.kills, c.random, c.inFlight, c.starts-c.jobs,
		c.lost, c.repeated, c.wrong, c.residue)
}
