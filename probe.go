package streamsql

import (
	"context"
	"fmt"
	"log/slog"
	"path"
	"slices"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/checkpoint/s3"
	"github.com/streamsql/streamsql/planner"
	"github.com/streamsql/streamsql/sql/diag"
)

// ProbeOptions say what to measure and for how long.
type ProbeOptions struct {
	// Scripts are the jobs' SQL texts.
	Scripts []string
	// StateDir is where their state would be. It need not exist, and may be in use.
	StateDir string
	// Within is how long one disk, or one server, is measured; 0 = 2 s.
	Within   time.Duration
	Embedded string // address of an embedded broker, "" = none
	Settings map[string]string
	Log      *slog.Logger
}

// Probed is a place or a server that was measured.
type Probed struct {
	Name   string
	Kind   string   // "disk", "storage" or "server"
	Tables []string // of a server
	// Speed is of a disk or a storage; of a server P50, P99 and Samples are round trips.
	checkpoint.Speed
	Err error // what kept it from being measured
}

// JobProbe is what the figures mean for a job.
type JobProbe struct {
	Job      string
	Interval time.Duration
	// Syncs, Puts and Trips are what a checkpoint without state waits for one after the other: fsyncs, writes to checkpoint storage,
	// round trips to the slowest server that is written to.
	Syncs, Puts, Trips int
	// AtP50 and AtP99 are how long that takes when each is as fast as half of them, or as slow as the slowest of a hundred.
	AtP50, AtP99 time.Duration
	// Bytes of state can be made durable in half of the interval.
	Bytes   int64
	Verdict Verdict
}

// Verdict is what is thought of the time that a checkpoint takes at least.
type Verdict string

// The verdicts.
const (
	VerdictGood    Verdict = "good"     // at most a tenth of the interval, at p99
	VerdictTight   Verdict = "tight"    // at most half of it
	VerdictSlow    Verdict = "too slow" // more
	VerdictOff     Verdict = "off"      // there is no interval
	VerdictUnknown Verdict = "unknown"  // something could not be measured
)

// ProbeReport is what was measured.
type ProbeReport struct {
	Places []Probed
	Jobs   []JobProbe
}

const (
	defaultProbe = 2 * time.Second
	// What a checkpoint without state makes durable one after the other: its directory, the manifest, the directory, the note that it
	// is committed, the directory. TestProbeCountsSyncs has the count of a real one.
	probeSyncs = 7
	// To checkpoint storage: the entry of the log, what it lists, the note of the commit.
	probePuts = 3
	// To a server that is written to: the last rows, the preparation, the commit and the question before it.
	probeTrips = 4
	// probeSlack is what a server may take beyond Within to be connected to.
	probeSlack = 10 * time.Second
)

// Probe measures what the checkpoints of jobs wait for: the disk of the state directory, checkpoint storage, and the ways to the
// servers of their tables. It starts no job, and removes what it wrote. What cannot be measured is in the report; an error is of
// the scripts.
func Probe(ctx context.Context, o ProbeOptions) (*ProbeReport, error) {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Within <= 0 {
		o.Within = defaultProbe
	}
	p := &prober{o: &o, at: map[string]int{}}
	var plans []*planner.Plan
	for _, text := range o.Scripts {
		ps, err := planScript(text, o.Settings, o.Embedded)
		if err != nil {
			return nil, err
		}
		plans = append(plans, ps...)
	}
	if len(plans) == 0 {
		return nil, diag.New(diag.Semantic, diag.Pos{}, "there is no INSERT to measure for").WithHint("give the file of a job: streamsql probe job.sql")
	}
	speed, err := checkpoint.ProbeDisk(ctx, vfs.Default, o.StateDir, o.Within)
	p.report.Places = append(p.report.Places, Probed{Name: o.StateDir, Kind: "disk", Speed: speed, Err: err})
	for _, plan := range plans {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		p.job(ctx, plan)
	}
	return &p.report, nil
}

type prober struct {
	o      *ProbeOptions
	report ProbeReport
	at     map[string]int // place by name
}

// job measures what a job needs and has not been measured, and judges.
func (p *prober) job(ctx context.Context, plan *planner.Plan) {
	j := JobProbe{Job: plan.Name, Interval: plan.CheckpointInterval(), Syncs: probeSyncs}
	used := []int{0}
	if s := plan.Storage(); s.Kept() {
		used = append(used, p.storage(ctx, s))
		j.Puts = probePuts
	}
	slowest := -1
	for _, s := range plan.Servers() {
		for _, i := range p.servers(ctx, s) {
			used = append(used, i)
			if s.Written && (slowest < 0 || p.report.Places[i].P99 > p.report.Places[slowest].P99) {
				slowest, j.Trips = i, probeTrips
			}
		}
	}
	j.judge(p.report.Places, used, slowest)
	p.report.Jobs = append(p.report.Jobs, j)
}

// judge says what the figures of the places that the job uses mean; slowest is the server that its checkpoints wait for, -1 = none.
func (j *JobProbe) judge(places []Probed, used []int, slowest int) {
	rate := 0.0
	for _, i := range used {
		q := &places[i]
		n := 0
		switch {
		case q.Kind == "disk":
			n = j.Syncs
		case q.Kind == "storage":
			n = j.Puts
		case i == slowest:
			n = j.Trips
		}
		if i == slowest || q.Kind != "server" {
			j.AtP50 += time.Duration(n) * q.P50
			j.AtP99 += time.Duration(n) * q.P99
		}
		if q.Kind != "server" && (rate == 0 || q.BytesPerSecond < rate) {
			rate = q.BytesPerSecond
		}
		if q.Err != nil {
			j.Verdict = VerdictUnknown
		}
	}
	j.Bytes = int64(rate * j.Interval.Seconds() / 2)
	switch {
	case j.Verdict == VerdictUnknown:
	case j.Interval == 0:
		j.Verdict = VerdictOff
	case j.AtP99 <= j.Interval/10:
		j.Verdict = VerdictGood
	case j.AtP99 <= j.Interval/2:
		j.Verdict = VerdictTight
	default:
		j.Verdict = VerdictSlow
	}
}

// place adds a place to the report.
func (p *prober) place(q Probed) int {
	p.at[q.Name] = len(p.report.Places)
	p.report.Places = append(p.report.Places, q)
	return p.at[q.Name]
}

// storage measures checkpoint storage, once.
func (p *prober) storage(ctx context.Context, s planner.Storage) int {
	name := s.Dir
	if s.Bucket != "" {
		name = "s3://" + path.Join(s.Bucket, s.Path)
	}
	if i, ok := p.at[name]; ok {
		return i
	}
	q := Probed{Name: name, Kind: "storage"}
	if s.Bucket == "" {
		q.Speed, q.Err = checkpoint.ProbeDisk(ctx, vfs.Default, s.Dir, p.o.Within)
		return p.place(q)
	}
	ctx, cancel := context.WithTimeout(ctx, 2*p.o.Within+probeSlack)
	defer cancel()
	var o checkpoint.ObjectStore
	if o, q.Err = s3.Open(ctx, s.Bucket, s3.Options{Endpoint: s.Endpoint, Region: s.Region, AccessKey: s.AccessKey, SecretKey: s.SecretKey, PathStyle: s.PathStyle}); q.Err == nil {
		q.Speed, q.Err = checkpoint.ProbeObjects(ctx, o, path.Join(s.Path, "probe")+"/", p.o.Within)
	}
	return p.place(q)
}

// servers measures the ways to the servers of a table, each once.
func (p *prober) servers(ctx context.Context, s planner.Server) (used []int) {
	ctx, cancel := context.WithTimeout(ctx, p.o.Within+probeSlack)
	defer cancel()
	all, err := s.Connector.Endpoints(ctx, s.Table, p.o.Embedded, p.o.Log)
	if err != nil {
		return []int{p.place(Probed{Name: fmt.Sprintf("the %s of table %s", s.Connector.Name, s.Table.Name), Kind: "server", Tables: []string{s.Table.Name}, Err: err})}
	}
	for _, e := range all {
		i, known := p.at[e.Name]
		if !known {
			q := Probed{Name: e.Name, Kind: "server"}
			q.P50, q.P99, q.Samples, q.Err = roundTrips(ctx, e.RoundTrip, p.o.Within/time.Duration(len(all)))
			i = p.place(q)
		}
		if q := &p.report.Places[i]; !slices.Contains(q.Tables, s.Table.Name) {
			q.Tables = append(q.Tables, s.Table.Name)
		}
		e.Close()
		used = append(used, i)
	}
	return used
}

// roundTrips measures calls, but for the first, which may have to connect.
func roundTrips(ctx context.Context, call func(context.Context) error, within time.Duration) (p50, p99 time.Duration, n int, err error) {
	const most, few = 1000, 5
	if err := call(ctx); err != nil {
		return 0, 0, 0, err
	}
	var took []time.Duration
	for began := time.Now(); len(took) < most && (len(took) < few || time.Since(began) < within); {
		one := time.Now()
		if err := call(ctx); err != nil {
			return 0, 0, len(took), err
		}
		took = append(took, time.Since(one))
	}
	return checkpoint.Quantile(took, 50), checkpoint.Quantile(took, 99), len(took), nil
}
