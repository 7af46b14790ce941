package metrics

import (
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/streamsql/streamsql"
	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/exec"
)

// Collector gives the figures of jobs, as they are when it is asked. It is safe for concurrent use.
type Collector struct {
	jobs  func() []*streamsql.Job
	descs map[*figure]*prometheus.Desc
}

// NewCollector makes a collector for the registry of a program that embeds the engine. jobs is Engine.Jobs.
func NewCollector(jobs func() []*streamsql.Job) *Collector {
	c := &Collector{jobs: jobs, descs: map[*figure]*prometheus.Desc{}}
	for _, f := range figures {
		c.descs[f] = prometheus.NewDesc(f.Name(), f.help, f.labels(), nil)
	}
	return c
}

// Describe implements prometheus.Collector.
func (c *Collector) Describe(out chan<- *prometheus.Desc) {
	for _, f := range figures {
		out <- c.descs[f]
	}
}

// Collect implements prometheus.Collector. It does not block on the jobs.
func (c *Collector) Collect(out chan<- prometheus.Metric) {
	now := time.Now()
	for _, j := range c.jobs() {
		s := j.Status()
		sample{c: c, out: out, job: []string{j.ID(), j.Name()}}.status(&s, now)
	}
}

// sample are the figures of one job at one moment.
type sample struct {
	c   *Collector
	out chan<- prometheus.Metric
	job []string
}

// set gives a figure its value; labels are those behind the job's.
func (m sample) set(f *figure, v float64, labels ...string) {
	m.out <- prometheus.MustNewConstMetric(m.c.descs[f], f.kind, v, append(slices.Clone(m.job), labels...)...)
}

func (m sample) status(s *exec.Status, now time.Time) {
	for _, st := range states {
		m.set(&jobState, truth(st == s.State), st.String())
	}
	m.set(&jobUptime, millis(now.Sub(s.Started)))
	m.set(&jobRestarts, float64(s.Restarts))
	m.set(&jobLate, float64(s.LateDropped))
	m.set(&jobSkipped, float64(s.Skipped))
	m.set(&jobFuture, float64(s.Future))
	m.set(&jobReadAgain, float64(s.ReadAgain))
	lost := 0
	for _, d := range s.Degraded {
		if d.Lost {
			lost++
		}
	}
	m.set(&jobDegradations, float64(lost), "true")
	m.set(&jobDegradations, float64(len(s.Degraded)-lost), "false")
	on := map[string]bool{}
	for _, a := range s.Alarms() {
		on[a.Name] = true
	}
	for _, name := range exec.AlarmNames() {
		m.set(&jobAlarm, truth(on[name]), name)
	}
	m.checkpoints(&s.Checkpoint, s.Started, now)
	m.store(&s.Store)
	m.syncs(&s.Syncs)
	for i := range s.Nodes {
		m.operator(&s.Nodes[i])
	}
	for i := range s.Splits {
		m.split(&s.Splits[i])
	}
	for i := range s.Sinks {
		m.sink(&s.Sinks[i])
	}
}

func (m sample) checkpoints(c *exec.CheckpointStatus, started, now time.Time) {
	n := c.Counts
	m.set(&jobCompleted, float64(n.Completed))
	m.set(&jobGivenUp, float64(n.Declined+n.Expired+n.Failed))
	for _, r := range []struct {
		name string
		n    int
	}{{"completed", n.Completed}, {"declined", n.Declined}, {"expired", n.Expired}, {"failed", n.Failed}, {"subsumed", n.Subsumed}, {"aborted", n.Aborted}} {
		m.set(&jobCheckpoints, float64(r.n), r.name)
	}
	m.set(&jobInARow, float64(c.FailedInARow))
	m.set(&jobBudget, truth(c.Warning != ""))
	m.set(&jobWritten, float64(c.Written))
	since := started
	if c.Last != 0 {
		since = c.At
		m.set(&jobLast, float64(c.Last))
		m.set(&jobDuration, millis(c.Duration))
		m.set(&jobSize, float64(c.Bytes))
		m.set(&jobAlignment, c.Alignment.Seconds())
		m.set(&jobPause, c.Pause.Seconds())
	}
	m.set(&jobLastAge, now.Sub(since).Seconds())
	if c.Committed != 0 {
		m.set(&jobCommitted, float64(c.Committed))
	}
	if c.P99 > 0 {
		m.set(&jobQuantile, c.P50.Seconds(), "0.5")
		m.set(&jobQuantile, c.P99.Seconds(), "0.99")
		m.set(&jobCommitP99, c.CommitP99.Seconds(), "0.99")
	}
	if r := c.Restore; r != nil {
		for _, p := range []struct {
			name string
			took time.Duration
		}{{"metadata", r.Metadata}, {"transactions", r.Transactions}, {"sources", r.Sources}, {"state", r.State}, {"writers", r.Writers}} {
			m.set(&jobRestore, p.took.Seconds(), p.name)
		}
	}
}

func (m sample) syncs(f *checkpoint.SyncFigures) {
	m.set(&stateSyncs, float64(f.Count))
	m.set(&stateSyncTime, f.Total.Seconds())
	if f.Samples > 0 {
		m.set(&stateSync, f.P50.Seconds(), "0.5")
		m.set(&stateSync, f.P99.Seconds(), "0.99")
	}
}

func (m sample) store(f *checkpoint.StoreFigures) {
	m.set(&stateUsed, float64(f.MemoryUsed))
	m.set(&stateLimit, float64(f.MemoryLimit))
	m.set(&stateHits, float64(f.CacheHits))
	m.set(&stateMisses, float64(f.CacheMisses))
	m.set(&stateDatabases, float64(f.Databases))
	m.set(&stateFiles, float64(f.Files))
	m.set(&stateNewFiles, float64(f.NewFiles))
	m.set(&stateBytes, float64(f.Bytes))
	m.set(&stateMemtable, float64(f.MemtableBytes))
	m.set(&stateCompactions, float64(f.Compactions))
	m.set(&stateDebt, float64(f.CompactionDebt))
	m.set(&stateStalls, float64(f.Stalls))
	m.set(&stateStallTime, f.StallTime.Seconds())
}

func (m sample) operator(n *exec.NodeStatus) {
	labels := []string{string(n.ID), n.Name}
	m.set(&operatorIn, float64(n.RowsIn), labels...)
	m.set(&operatorOut, float64(n.RowsOut), labels...)
	if n.Watermark != exec.NoWatermark {
		m.set(&operatorWatermark, float64(n.Watermark), labels...)
	}
	for name, v := range n.Counters {
		m.set(&operatorCounter, float64(v), append(slices.Clone(labels), name)...)
	}
}

func (m sample) split(s *exec.SplitStatus) {
	labels := []string{string(s.Node), string(s.Split)}
	m.set(&splitRecords, float64(s.Records), labels...)
	m.set(&splitBytes, float64(s.Bytes), labels...)
	m.set(&splitIdle, truth(s.Idle), labels...)
	if s.Lag >= 0 {
		m.set(&splitPending, float64(s.Lag), labels...)
	}
	if s.Watermark != exec.NoWatermark {
		m.set(&splitWatermark, float64(s.Watermark), labels...)
	}
}

func (m sample) sink(s *exec.SinkStatus) {
	labels := []string{string(s.ID), s.Node}
	m.set(&sinkPending, float64(s.Pending), labels...)
	m.set(&sinkOldest, s.OldestPending.Seconds(), labels...)
	m.set(&sinkOpen, float64(len(s.Open)), labels...)
	age := time.Duration(0)
	for _, t := range s.Open {
		age = max(age, t.Age)
	}
	m.set(&sinkOpenAge, age.Seconds(), labels...)
	if s.Timeout > 0 {
		m.set(&sinkTimeout, s.Timeout.Seconds(), labels...)
	}
	for _, l := range []struct {
		f *figure
		l exec.Latency
	}{{&sinkPreCommit, s.PreCommit}, {&sinkCommit, s.Commit}} {
		if l.l.Samples > 0 {
			m.set(l.f, l.l.P50.Seconds(), append(slices.Clone(labels), "0.5")...)
			m.set(l.f, l.l.P99.Seconds(), append(slices.Clone(labels), "0.99")...)
		}
	}
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
