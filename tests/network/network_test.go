package network

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/streamsql/streamsql/cmd/streamsql/netproxy"
	"github.com/streamsql/streamsql/tests/harness"
)

// Goal: whatever the network does to the connections of a running job, readers see each row once and nothing is left behind: no
// operator has to come. Method: a real broker and a real database behind proxies; a job for each way to commit, fed all the time,
// suffers one fault after the other, first those that hurt most, then random ones. After each, all rows must become visible.

func TestMain(m *testing.M) { harness.Main(m) }

// usual is how many faults the five jobs of TestNetwork suffer together.
const usual = 15

// faultsEnv names the environment variable with another number; make network sets it. With more than usual, the slow faults are among them.
const faultsEnv = "STREAMSQL_TEST_NETWORK_FAULTS"

// seedEnv names the environment variable with the seed that a failed run has printed.
const seedEnv = "STREAMSQL_TEST_NETWORK_SEED"

func number(t *testing.T, env string, usual uint64) uint64 {
	t.Helper()
	s := os.Getenv(env)
	if s == "" {
		return usual
	}
	n, err := strconv.ParseUint(s, 10, 64)
	if err != nil {
		t.Fatalf("$%s is %q, want a number", env, s)
	}
	return n
}

// blow is a fault on one of a job's two ways.
type blow struct {
	system string // kafka or postgres
	netproxy.Fault
}

// longest bounds a random fault.
const longest = 6 * time.Second

// limit ends faults that wait for something that does not come.
const limit = 20 * time.Second

func lose(request string, how netproxy.Fault) netproxy.Fault {
	how.Kind, how.Request, how.Times, how.For = netproxy.LoseReply, request, 1, limit
	return how
}

var (
	halfOpen  = netproxy.Fault{}
	cut       = netproxy.Fault{Cut: true}
	cutClient = netproxy.Fault{Cut: true, ClientOnly: true}
)

// first are the faults that each job suffers first: an answer to a commit that is lost in each way, connections that break in the middle, ones that
// end without a word, an outage.
var first = map[string][]blow{
	"kafka two-phase": {
		{"kafka", lose("EndTxn", halfOpen)}, {"kafka", lose("EndTxn", cutClient)},
		{"kafka", netproxy.Fault{Kind: netproxy.Reset, After: 700, Times: 3, For: limit}},
	},
	"kafka write-ahead": {
		{"kafka", lose("EndTxn", cut)}, {"kafka", netproxy.Fault{Kind: netproxy.Drop, Direction: netproxy.ToServer, After: 100, Times: 1, For: limit}},
		{"kafka", netproxy.Fault{Kind: netproxy.Partition, For: 3 * time.Second}},
	},
	"postgres prepared": {
		{"postgres", lose("COMMIT PREPARED", halfOpen)}, {"postgres", lose("PREPARE TRANSACTION", cutClient)},
		{"postgres", netproxy.Fault{Kind: netproxy.Partition, Refuse: true, For: 2 * time.Second}},
	},
	"postgres write-ahead": {
		{"postgres", lose("COMMIT", cut)}, {"postgres", lose("INSERT INTO", cutClient)},
		{"postgres", netproxy.Fault{Kind: netproxy.Reset, Direction: netproxy.ToServer, After: 60, Times: 2, For: limit}},
	},
	"postgres upsert": {
		{"postgres", lose("COMMIT", cutClient)}, {"postgres", netproxy.Fault{Kind: netproxy.Drop, After: 200, Times: 1, For: limit}},
		{"kafka", netproxy.Fault{Kind: netproxy.Reset, Direction: netproxy.ToClient, After: 50, Times: 2, For: limit}},
	},
}

// asks are the requests that a job makes all the time, by system: a reply to others would not be lost in time.
var asks = map[string]map[string][]string{
	"kafka two-phase":      {"kafka": {"EndTxn", "Produce", "Fetch"}},
	"kafka write-ahead":    {"kafka": {"EndTxn", "Produce", "Fetch", "InitProducerId", "ListOffsets", "FindCoordinator", "Metadata"}},
	"postgres prepared":    {"kafka": {"Fetch"}, "postgres": {"COMMIT", "COMMIT PREPARED", "PREPARE TRANSACTION", "INSERT INTO", "BEGIN", "COPY", "SELECT"}},
	"postgres write-ahead": {"kafka": {"Fetch"}, "postgres": {"COMMIT", "INSERT INTO", "BEGIN", "COPY", "SELECT"}},
	"postgres upsert":      {"kafka": {"Fetch"}, "postgres": {"COMMIT", "INSERT INTO", "BEGIN", "COPY", "SELECT"}},
}

// slow are the faults that come next in a long run: a second of delay for half a minute.
func slow(sink string) []blow {
	late := netproxy.Fault{Kind: netproxy.Delay, Delay: time.Second, For: 30 * time.Second}
	if strings.HasPrefix(sink, "kafka") {
		return []blow{{"kafka", late}}
	}
	return []blow{{"postgres", late}, {"kafka", late}}
}

// series draws the faults that a job suffers.
func series(r *rand.Rand, sink string, n int) []blow {
	out := slices.Clone(first[sink])
	if n > len(out) {
		out = append(out, slow(sink)...)
	}
	for len(out) < n {
		b := blow{"kafka", netproxy.Random(r, netproxy.Kafka, longest)}
		if !strings.HasPrefix(sink, "kafka") && r.IntN(3) > 0 {
			b = blow{"postgres", netproxy.Random(r, netproxy.Postgres, longest)}
		}
		if b.Kind != netproxy.LoseReply || slices.Contains(asks[sink][b.system], b.Request) {
			out = append(out, b)
		}
	}
	return out[:n]
}

// ways starts a broker with a proxy in front for each of n jobs.
func ways(t *testing.T, n int) (*harness.Broker, []*netproxy.Proxy) {
	t.Helper()
	var proxies []*netproxy.Proxy
	var options []harness.KafkaOption
	for range n {
		options = append(options, harness.KafkaVia(func(listen string) (string, error) {
			p, err := netproxy.Start(listen, netproxy.Kafka)
			if err != nil {
				return "", err
			}
			proxies = append(proxies, p)
			return p.Addr(), nil
		}))
	}
	k := harness.Kafka(t, options...)
	t.Cleanup(func() {
		for _, p := range proxies {
			p.Close()
		}
	})
	return k, proxies
}

func TestNetwork(t *testing.T) {
	n, seed := int(number(t, faultsEnv, usual)), number(t, seedEnv, uint64(time.Now().UnixNano()))
	t.Logf("seed %d ($%s)", seed, seedEnv)
	var names []string
	for sink := range sinks {
		names = append(names, sink)
	}
	slices.Sort(names)
	k, proxies := ways(t, len(names))
	harness.BuildStreamsql(t)
	var jobs sync.WaitGroup
	defer jobs.Wait()
	for i, sink := range names {
		faults := series(rand.New(rand.NewPCG(seed, uint64(i))), sink, n/len(names)+min(1, max(0, n%len(names)-i)))
		// Not t.Parallel, which runs as many at a time as there are processors: these mostly wait.
		jobs.Go(func() {
			t.Run(strings.ReplaceAll(sink, " ", "-"), func(t *testing.T) {
				j := start(t, sink, k, i, proxies[i], "", "")
				j.produce(20)
				j.caughtUp()
				var r record
				for at, b := range faults {
					j.suffer(at, b, &r)
					if t.Failed() {
						return
					}
				}
				lost, twice := j.end()
				t.Log(r.line(j, lost, twice))
			})
		})
	}
}

// record is what came of a job's faults.
type record struct {
	struck, missed int
	byKind         [5]int
	recovery       []time.Duration // from the end of each fault until all rows were visible
}

// suffer feeds the job while the fault is in force and a little longer, and waits until all that is visible.
func (j *job) suffer(at int, b blow, r *record) {
	j.t.Helper()
	p := j.toKafka
	if b.system == "postgres" {
		p = j.toPG
	}
	before := j.restarts()
	i, err := p.Inject(b.Fault)
	if err != nil {
		j.t.Fatal(err)
	}
	for over := false; !over; {
		j.produce(20)
		select {
		case <-i.Done():
			over = true
		case <-time.After(50 * time.Millisecond): // the feed's pace
		}
	}
	begin := time.Now()
	j.produce(20)
	j.caughtUp()
	took := time.Since(begin)
	if i.Hits() == 0 {
		r.missed++
		j.t.Logf("%d: %s %v: did not strike", at, b.system, b.Fault)
		return
	}
	r.struck++
	r.byKind[b.Kind]++
	r.recovery = append(r.recovery, took)
	j.t.Logf("%d: %s %v: struck %d, %d restarts, all %d rows visible after %v", at, b.system, b.Fault, i.Hits(), j.restarts()-before, j.produced, took.Round(10*time.Millisecond))
}

// line is a row of the table in docs/exactly-once.md.
func (r *record) line(j *job, lost, twice int) string {
	slices.Sort(r.recovery)
	at := func(q float64) time.Duration {
		if len(r.recovery) == 0 {
			return 0
		}
		return r.recovery[int(q*float64(len(r.recovery)-1))].Round(10 * time.Millisecond)
	}
	return fmt.Sprintf("| %s | %d | %d | %d | %d | %d | %d | %d | %d | %d | %d | %v | %v | %v |", j.sink, r.struck, r.byKind[netproxy.LoseReply], r.byKind[netproxy.Reset],
		r.byKind[netproxy.Drop], r.byKind[netproxy.Partition], r.byKind[netproxy.Delay], j.restarts(), j.produced, lost, twice, at(0.5), at(0.99), at(1))
}
