package chaos

import (
	"log/slog"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/streamsql/streamsql/sql/diag"
)

// The kinds of faults.
const (
	Kill      = "kill9"     // SIGKILL at a random time
	Failpoint = "failpoint" // SIGKILL at a named place of the protocol
	Network   = "net"       // connections to brokers and databases are delayed, cut, left half-open, or lose an answer
	Pause     = "pause"     // SIGSTOP; another process takes over, and the first one wakes up
	Rescale   = "rescale"   // SIGKILL, and the next process runs with another parallelism
	Savepoint = "savepoint" // stopped with a savepoint, which the next process starts from
	Disk      = "disk"      // no file can grow for a while
	ReadOnly  = "readonly"  // nothing in the state directory can be made or renamed for a while
	Server    = "server"    // a command of the user's kills and restarts a broker or a database
	Clock     = "clock"     // the wall clock is set while the job runs, and again between processes
)

// Kinds are the kinds of faults, in the order of reports.
func Kinds() []string {
	return []string{Kill, Failpoint, Network, Pause, Rescale, Savepoint, Disk, ReadOnly, Server, Clock}
}

// Options are what a check is asked for.
type Options struct {
	Script   string            // the jobs' SQL
	Settings map[string]string // of the session, as flag -D
	Seed     uint64
	Faults   int           // how many are injected, at most
	Rows     int64         // of each source, at most
	Kinds    []string      // of faults; nil = all
	Servers  []string      // commands for the shell, each of which kills and restarts a broker or a database
	Only     int           // the one trial to run; 0 = all
	Oracle   string        // "" = what the sinks allow; else a query over the sinks, whose rows are compared instead
	RunFor   time.Duration // how long a run without faults is made to last
	Timeout  time.Duration // of the whole check
	ID       string        // of the run, in the names of shadows
	Keep     bool          // keep shadows and directories
	Embedded string        // address of an embedded broker, "" = none
	Child    []string      // arguments that make this program run Child
	Replay   string        // the command line without seed and trial, for the report
	Say      func(string)  // progress; nil = none
	Log      *slog.Logger
}

var runID = regexp.MustCompile(`^[a-z0-9]{1,16}$`)

func (o *Options) check() error {
	bad := func(flag, hint string) error {
		return diag.New(diag.Config, diag.Pos{}, "flag --%s cannot be used as it is", flag).WithHint("%s", hint)
	}
	for _, k := range o.Kinds {
		if !slices.Contains(Kinds(), k) {
			err := diag.New(diag.Config, diag.Pos{}, "flag --faults: there is no fault %q", k).WithHint("the faults are %s", strings.Join(Kinds(), ", "))
			if n := diag.Nearest(k, Kinds()); n != "" {
				err.WithHint("did you mean %q? The faults are %s", n, strings.Join(Kinds(), ", "))
			}
			return err
		}
	}
	switch {
	case o.Faults < 1:
		return bad("kills", "at least one fault must be injected")
	case o.Rows < 1:
		return bad("rows", "at least one row must be read")
	case o.RunFor < 100*time.Millisecond || o.RunFor > time.Hour:
		return bad("run-for", "from 100ms to 1h")
	case o.Timeout < time.Second:
		return bad("timeout", "at least 1s")
	case !runID.MatchString(o.ID):
		return bad("id", "lower case letters and digits, at most 16")
	case o.Only < 0:
		return bad("only", "trials are numbered from 1")
	case slices.Contains(o.Servers, ""):
		return bad("server-fault", "give a command for the shell, such as 'docker restart kafka'")
	case len(o.Servers) == 0 && len(o.Kinds) == 1 && o.Kinds[0] == Server:
		return bad("faults", "fault server needs a command: --server-fault 'docker restart kafka'")
	}
	if o.Kinds == nil {
		o.Kinds = Kinds()
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Say == nil {
		o.Say = func(string) {}
	}
	return nil
}
