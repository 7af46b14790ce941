package endtxn

// Goal: know, not believe, what EndTxn answers. Method: one script per state of a transactional id, run on a real broker
// of each release, transcript compared with testdata (go test ./tests/endtxn -rewrite records them anew).

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/streamsql/streamsql/tests/harness"
	"github.com/twmb/franz-go/pkg/kgo"
)

// Brokers wait for their own clocks most of the time.
func TestMain(m *testing.M) { harness.MainParallel(m, runtime.GOMAXPROCS(0)+2) }

// brokers are the releases asked, newest first; the file of each is testdata/<version>-tv<n>.txt.
var brokers = []struct {
	version string
	tv      int16 // the transaction.version in force
	opts    []harness.KafkaOption
}{
	{harness.KafkaNewest, 2, nil},
	{harness.KafkaDefault, 2, nil},
	{harness.KafkaDefault, 1, []harness.KafkaOption{harness.KafkaTransactionVersion(1)}},
	{harness.KafkaOldest4, 2, nil},
	{harness.KafkaTV1, 1, nil},
}

func TestAnswers(t *testing.T) {
	for _, c := range brokers {
		t.Run(fmt.Sprintf("%s-tv%d", c.version, c.tv), func(t *testing.T) {
			t.Parallel() // most of the time is spent waiting for timeouts
			b := harness.Kafka(t, append([]harness.KafkaOption{
				harness.KafkaVersion(c.version),
				harness.KafkaConfig("transaction.remove.expired.transaction.cleanup.interval.ms", "300"),
			}, c.opts...)...)
			if got := b.TransactionVersion(t); (got >= 2) != (c.tv >= 2) {
				t.Fatalf("the broker's transaction.version is %d, this run is for %d", got, c.tv)
			}
			play(t, b, c.tv, fmt.Sprintf("testdata/%s-tv%d.txt", c.version, c.tv), scenarios)
		})
	}
}

// play runs the scenarios that the golden file names, and demands that it names all.
func play(t *testing.T, b *harness.Broker, tv int16, file string, scenarios map[string]func(*script)) {
	var ran []string
	datadriven.RunTest(t, file, func(t *testing.T, d *datadriven.TestData) string {
		run, ok := scenarios[d.Cmd]
		if !ok {
			t.Fatalf("%s: there is no scenario %q", d.Pos, d.Cmd)
		}
		ran = append(ran, d.Cmd)
		s := newScript(t, b, tv)
		run(s)
		return s.out.String()
	})
	for name := range scenarios {
		if !slices.Contains(ran, name) {
			t.Errorf("%s does not ask for scenario %s", file, name)
		}
	}
}

// scenarios bring a transactional id into a state and send EndTxn(commit) for the transaction (P, E).
var scenarios = map[string]func(s *script){
	"ongoing": func(s *script) {
		x := s.open()
		s.say("state: %s; marker: %s; visible: %d", s.state(x), s.marker(x), s.visible())
		s.say("commit: %s", s.commit(x))
		s.say("marker: %s; visible: %d", s.decided(x), s.visible())
		s.say("state: %s", s.until(x, "CompleteCommit"))
	},
	"repeat-after-commit": func(s *script) {
		x := s.open()
		s.say("commit: %s", s.commit(x))
		s.say("then: %s", s.until(x, "CompleteCommit"))
		s.say("commit again: %s", s.commit(x))
		s.say("and again: %s", s.commit(x))
		s.say("abort after commit: %s", s.end(x, false))
		s.say("state: %s; marker: %s; visible: %d", s.state(x), s.marker(x), s.visible())
	},
	"repeat-with-other-version": func(s *script) {
		x := s.open()
		s.say("commit: %s", s.commit(x))
		s.until(x, "CompleteCommit")
		other := s.capped(4)
		if s.tv < 2 {
			other = s.capped(-1)
		}
		s.say("commit again: %s", s.endWith(other, x, true))
		s.say("marker: %s", s.marker(x))
	},
	"first-commit-with-other-version": func(s *script) {
		x := s.open()
		other := s.capped(4)
		if s.tv < 2 {
			other = s.capped(-1)
		}
		s.say("commit: %s", s.endWith(other, x, true))
		s.say("marker: %s; visible: %d", s.decided(x), s.visible())
		s.say("commit with the right version: %s", s.commit(x))
		s.say("marker: %s; visible: %d", s.decided(x), s.visible())
	},
	"newer-ongoing": func(s *script) {
		cl := s.writer(time.Minute)
		x := s.begin(cl, 1)
		s.check(cl.EndTransaction(s.ctx(), kgo.TryCommit))
		y := s.begin(cl, 1)
		s.say("newer transaction: %s, %s", identity(x, y.pid, y.epoch), s.marker(y))
		s.say("commit of the older: %s", s.commit(x))
		s.say("state: %s", s.settled(x))
		s.say("marker of the older: %s; of the newer: %s", s.marker(x), s.marker(y))
	},
	"newer-committed": func(s *script) {
		cl := s.writer(time.Minute)
		x := s.begin(cl, 1)
		s.check(cl.EndTransaction(s.ctx(), kgo.TryCommit))
		y := s.begin(cl, 1)
		s.check(cl.EndTransaction(s.ctx(), kgo.TryCommit))
		s.until(x, "CompleteCommit")
		s.say("commit of the older: %s", s.commit(x))
		s.say("marker of the older: %s; of the newer: %s", s.marker(x), s.marker(y))
	},
	"timed-out": func(s *script) {
		x := s.begin(s.writer(5*time.Second), 1) // long enough to write the row on a loaded machine
		s.say("state: %s", s.until(x, "CompleteAbort"))
		s.say("commit: %s", s.commit(x))
		s.say("commit again: %s", s.commit(x))
		s.say("marker: %s; visible: %d", s.decided(x), s.visible())
		s.say("init: %s", s.init(x))
		s.say("commit after it: %s", s.commit(x))
		s.say("marker: %s", s.marker(x))
	},
	"client-abort": func(s *script) {
		x := s.open()
		s.say("abort: %s", s.end(x, false))
		s.say("state: %s", s.until(x, "CompleteAbort"))
		s.say("commit: %s", s.commit(x))
		s.say("abort again: %s", s.end(x, false))
		s.say("marker: %s; visible: %d", s.marker(x), s.visible())
	},
	"init-after-commit": func(s *script) {
		x := s.open()
		s.say("commit: %s", s.commit(x))
		s.say("init: %s", s.init(x))
		s.say("state: %s", s.state(x))
		s.say("commit again: %s", s.commit(x))
		s.say("marker: %s; visible: %d", s.marker(x), s.visible())
	},
	"init-instead-of-commit": func(s *script) {
		x := s.open()
		s.say("init: %s", s.init(x))
		s.say("state: %s", s.state(x))
		s.say("commit: %s", s.commit(x))
		s.say("marker: %s; visible: %d", s.marker(x), s.visible())
	},
	"init-once-instead-of-commit": func(s *script) {
		x := s.open()
		answer, _ := s.initOnce(x)
		s.say("init: %s", answer)
		s.say("state: %s", s.until(x, "CompleteAbort"))
		s.say("commit: %s", s.commit(x))
		s.say("marker: %s; visible: %d", s.marker(x), s.visible())
	},
	"empty": func(s *script) {
		x := txn{id: s.id, topic: s.topic}
		x.pid, x.epoch = s.fresh()
		s.say("state: %s", s.state(x))
		s.say("commit: %s", s.commit(x))
		s.say("abort: %s", s.end(x, false))
		s.say("state: %s", s.settled(x))
	},
	"unknown-id": func(s *script) {
		s.say("commit: %s", s.commit(txn{id: s.id, pid: 424242, topic: s.topic}))
	},
	"other-pid": func(s *script) {
		x := s.open()
		y := x
		y.pid += 1000
		s.say("commit: %s", s.commit(y))
		s.say("state: %s; marker: %s", s.state(x), s.marker(x))
	},
	"other-epoch": func(s *script) {
		x := s.open()
		later, earlier := x, x
		later.epoch++
		s.say("commit at E+1: %s", s.commit(later))
		if _, err := s.initOnce(x); err == nil {
			s.t.Fatal("init ended an ongoing transaction at once")
		}
		s.init(x)
		y := s.open()
		earlier.pid, earlier.epoch = y.pid, y.epoch-1
		s.say("commit at E-1: %s", s.commit(earlier))
		s.say("state: %s; marker: %s", s.state(y), s.marker(y))
	},
	"expired-id": func(s *script) {
		s.restartWith("transactional.id.expiration.ms", "1000")
		defer s.restartWith("transactional.id.expiration.ms", "604800000") // the default, a week
		x := s.open()
		s.say("commit: %s", s.commit(x))
		s.say("state: %s", s.until(x, "TRANSACTIONAL_ID_NOT_FOUND"))
		s.say("commit again: %s", s.commit(x))
		s.say("marker: %s; visible: %d", s.marker(x), s.visible())
	},
	"request-v1": func(s *script) {
		x := s.open()
		s.init(x)
		s.say("commit of a fenced transaction: %s", s.endWith(s.capped(1), x, true))
	},
	"zombie": func(s *script) {
		x := s.open()
		old := s.client
		s.say("init: %s", s.init(x))
		s.say("produce by the old client: %s", code(old.ProduceSync(s.ctx(), &kgo.Record{Topic: s.topic, Value: []byte("z")}).FirstErr()))
		s.say("commit by the old client: %s", code(old.EndTransaction(s.ctx(), kgo.TryCommit)))
		s.say("visible: %d; marker: %s", s.visible(), s.marker(x))
	},
	"foreign-commit": func(s *script) {
		x := s.open()
		old := s.client
		s.say("commit by somebody else: %s", s.commit(x))
		s.until(x, "CompleteCommit")
		s.say("produce by its own client: %s", code(old.ProduceSync(s.ctx(), &kgo.Record{Topic: s.topic, Value: []byte("z")}).FirstErr()))
		s.say("commit by its own client: %s", code(old.EndTransaction(s.ctx(), kgo.TryCommit)))
		s.say("visible: %d; marker: %s", s.visible(), s.marker(x))
	},
	"broker-crash": func(s *script) {
		x := s.open()
		s.crash()
		s.say("state: %s; marker: %s", s.state(x), s.marker(x))
		s.say("commit: %s", s.commit(x))
		s.say("marker: %s; visible: %d", s.decided(x), s.visible())
		s.until(x, "CompleteCommit")
		s.crash()
		s.say("commit again: %s", s.commit(x))
		s.say("marker: %s", s.marker(x))
	},
}

// crash kills the broker with SIGKILL and starts it again.
func (s *script) crash() {
	s.t.Helper()
	s.b.Kill()
	s.check(s.b.Restart())
}

// restartWith restarts the broker with a changed configuration.
func (s *script) restartWith(key, value string) {
	s.t.Helper()
	s.b.SetConfig(s.t, key, value)
	s.b.Stop()
	s.check(s.b.Restart())
}

// fresh initialises the script's id and returns its producer id and epoch.
func (s *script) fresh() (int64, int16) {
	cl := s.writer(time.Minute)
	pid, epoch, err := cl.ProducerID(s.ctx())
	s.check(err)
	return pid, epoch
}

// settled waits until the id is not about to change by itself, and returns its state.
func (s *script) settled(x txn) string {
	for {
		if got := s.state(x); !strings.HasPrefix(got, "Prepare") {
			return got
		}
	}
}
