package streamsql

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/streamsql/streamsql/catalog"
	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/connectors"
	"github.com/streamsql/streamsql/connectors/kafka/embedded"
	"github.com/streamsql/streamsql/connectors/memory"
	"github.com/streamsql/streamsql/planner"
	"github.com/streamsql/streamsql/sql/diag"
	"github.com/streamsql/streamsql/sql/expr"
)

// Options change how an Engine is opened. The zero value is a good start.
type Options struct {
	// Settings are session settings as SET takes them, for example "parallelism.default": "2".
	Settings map[string]string
	// Connectors are the kinds of external systems tables may name; nil = DefaultConnectors.
	Connectors []connectors.Connector
	// Restore says where INSERT jobs start; the zero value resumes the newest checkpoint of the state directory.
	Restore Restore
	// EmbeddedKafka starts a Kafka broker inside this process for Kafka tables without bootstrap servers. Its topics
	// are kept below the state directory. EmbeddedAddr uses one that runs elsewhere instead.
	EmbeddedKafka bool
	EmbeddedAddr  string
	// Redefine lets CREATE TABLE and CREATE VIEW replace what an earlier process left in the catalog, so that a file can
	// be run again. Defining a name twice within one engine stays an error.
	Redefine bool
	// TakeOver takes the state directory from a process that hangs: the other can no longer publish anything.
	TakeOver bool
	// Memory bounds the keyed state held in memory, in bytes, of all jobs together; 0 = a quarter of the machine's.
	Memory int64
	// Output is where the connector 'print' writes; nil = os.Stdout.
	Output io.Writer
	// Log receives the jobs' log; nil = none.
	Log *slog.Logger
	// Now is the clock of jobs: state TTL, idleness, processing time and timeouts; nil = the machine's.
	Now func() time.Time
}

// Restore says where a job starts.
type Restore struct {
	None bool   // afresh, under a new lineage
	Path string // from a savepoint or a checkpoint directory; "" = the newest checkpoint
	// AllowDropped lets a changed statement drop state that it has no place for, and start operators empty whose input goes
	// on. AllowRewind lets Path be older than what the job has committed, whose output is then written again. Both are
	// refused otherwise.
	AllowDropped, AllowRewind bool
}

// Engine plans and runs statements: one session with its settings, a catalog, and the jobs it started. It is safe for
// concurrent use, but statements that depend on each other must be executed one after the other.
type Engine struct {
	dir      string
	log      *slog.Logger
	owner    *checkpoint.Owner
	planner  *planner.Planner
	conf     *planner.Config
	conns    []connectors.Connector
	bus      *memory.Bus
	memory   *checkpoint.MemoryBudget
	restore  Restore
	takeOver bool
	stale    map[string]bool // objects of earlier processes that may be replaced
	broker   *embedded.Broker
	embedded string
	notices  []string // about Options
	now      func() time.Time

	mu      sync.Mutex
	runNote *checkpoint.Run // nil = statements are no run
	jobs    map[string]*Job // running and ended, by id
	order   []string
	closed  bool
	busy    sync.WaitGroup // what uses the state directory outside a job: Close waits for it
}

// Open opens the engine of a state directory, which it creates; no other process may have it open (the error's class
// is diag.Conflict and it names the holder). dir "" keeps everything in memory: tables, checkpoints and state end with
// the engine.
func Open(dir string, o *Options) (*Engine, error) {
	if o == nil {
		o = &Options{}
	}
	if err := checkpoint.CheckMemoryBudget(o.Memory); err != nil {
		return nil, err
	}
	e := &Engine{
		dir: dir, log: o.Log, conf: planner.NewConfig(), bus: memory.NewBus(), jobs: map[string]*Job{},
		restore: o.Restore, takeOver: o.TakeOver, embedded: o.EmbeddedAddr, memory: checkpoint.NewMemoryBudget(o.Memory), now: o.Now,
	}
	if e.log == nil {
		e.log = slog.New(slog.DiscardHandler)
	}
	if err := e.open(o); err != nil {
		return nil, errors.Join(err, e.Close())
	}
	return e, nil
}

func (e *Engine) open(o *Options) (err error) {
	for _, k := range slices.Sorted(maps.Keys(o.Settings)) {
		notice, err := e.conf.Set(k, o.Settings[k], diag.Pos{})
		if err != nil {
			return &SettingError{Key: k, Err: err}
		}
		if notice != "" {
			e.notices = append(e.notices, notice)
		}
	}
	if e.dir != "" {
		if e.owner, err = own(e.dir, e.takeOver); err != nil {
			return err
		}
	}
	if o.EmbeddedKafka {
		if e.dir == "" {
			return diag.New(diag.Config, diag.Pos{}, "the embedded Kafka broker needs a state directory for its topics").
				WithHint("open the engine with a directory")
		}
		if e.broker, err = embedded.Start(embedded.Options{Dir: filepath.Join(e.dir, "kafka")}); err != nil {
			return err
		}
		e.embedded = e.broker.Addr()
	}
	e.conns = o.Connectors
	if e.conns == nil {
		out := o.Output
		if out == nil {
			out = os.Stdout
		}
		e.conns = DefaultConnectors(out)
	}
	e.conns = append(slices.Clone(e.conns), *e.bus.Connector())
	cat, err := catalog.New(e.dir)
	if err != nil {
		return err
	}
	e.planner = planner.New(cat, e.conns, expr.NewRegistry())
	if err := e.planner.Load(e.conf); err != nil {
		return err
	}
	if o.Redefine {
		e.stale = map[string]bool{}
		for _, o := range cat.List() {
			e.stale[o.ObjectName()] = true
		}
	}
	return nil
}

// SettingError says which of Options.Settings Open refused; Err is a *diag.Error.
type SettingError struct {
	Key string
	Err error
}

// Error is why the value is refused.
func (e *SettingError) Error() string { return e.Err.Error() }

// Unwrap is why the value is refused.
func (e *SettingError) Unwrap() error { return e.Err }

// Notices are remarks about the options the engine was opened with.
func (e *Engine) Notices() []string { return e.notices }

// own takes a state directory.
func own(dir string, takeOver bool) (*checkpoint.Owner, error) {
	if takeOver {
		return checkpoint.TakeOver(dir)
	}
	return checkpoint.OwnDir(dir)
}

// enter begins something that uses the state directory, unless the engine is closed; leave ends it.
func (e *Engine) enter() (leave func(), err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return nil, diag.New(diag.Conflict, diag.Pos{}, "the engine is closed").WithHint("open another one")
	}
	e.busy.Add(1)
	return e.busy.Done, nil
}

// Close stops every running job with a final checkpoint, waits for them and gives up the state directory. It returns
// the errors of jobs that could not stop cleanly.
func (e *Engine) Close() error {
	e.mu.Lock()
	if e.closed {
		e.mu.Unlock()
		return nil
	}
	e.closed = true
	e.mu.Unlock()
	e.busy.Wait() // a job that is just being started is stopped too
	e.mu.Lock()
	running := e.runningLocked()
	all := slices.Collect(maps.Values(e.jobs))
	e.mu.Unlock()
	var errs []error
	for _, j := range running {
		if j.query {
			j.Cancel()
		} else if err := j.Stop(context.Background(), StopOptions{}); err != nil {
			errs = append(errs, fmt.Errorf("job %s: %w", j.ID(), err))
		}
	}
	// A job that has ended may still hold its state directory, which another engine can want at once.
	for _, j := range all {
		<-j.done
	}
	if e.broker != nil {
		e.broker.Close()
	}
	if e.owner != nil {
		errs = append(errs, e.owner.Close())
	}
	return errors.Join(errs...)
}

// Jobs are the jobs of this engine, running and ended, in the order they were started. Queries are not listed.
func (e *Engine) Jobs() []*Job {
	e.mu.Lock()
	defer e.mu.Unlock()
	var out []*Job
	for _, id := range e.order {
		if j := e.jobs[id]; !j.query {
			out = append(out, j)
		}
	}
	return out
}

// Job is the job with the given id, or nil. A unique prefix of the id will do.
func (e *Engine) Job(id string) *Job {
	var found *Job
	for _, j := range e.Jobs() {
		switch {
		case j.ID() == id:
			return j
		case strings.HasPrefix(j.ID(), id) && id != "":
			if found != nil {
				return nil
			}
			found = j
		}
	}
	return found
}

func (e *Engine) runningLocked() []*Job {
	var out []*Job
	for _, id := range e.order {
		if j := e.jobs[id]; !j.job.Status().State.Ended() {
			out = append(out, j)
		}
	}
	return out
}

// Setting is the effective value of a session setting, "" when it has none.
func (e *Engine) Setting(key string) string {
	v, _ := e.conf.Get(key)
	return v
}

// Session is what values are rendered with: the session's time zone.
func (e *Engine) Session() expr.Session { return expr.Session{Zone: e.conf.Zone()} }
