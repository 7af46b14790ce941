package streamsql

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/streamsql/streamsql/checkpoint"
)

// Goal: the verdict is that of the slowest that a checkpoint waits for, against the interval. Method: figures on both sides of
// each limit.
func TestProbeVerdicts(t *testing.T) {
	speed := func(p99 time.Duration) checkpoint.Speed {
		return checkpoint.Speed{P50: p99 / 2, P99: p99, Samples: 9, BytesPerSecond: 1e6, Bytes: 1}
	}
	disk := func(p99 time.Duration) Probed { return Probed{Kind: "disk", Speed: speed(p99)} }
	server := func(p99 time.Duration) Probed { return Probed{Kind: "server", Speed: speed(p99)} }
	const interval = time.Second
	for what, c := range map[string]struct {
		places  []Probed
		slowest int
		every   time.Duration
		want    Verdict
	}{
		"good":                          {[]Probed{disk(interval / 10 / probeSyncs)}, -1, interval, VerdictGood},
		"tight":                         {[]Probed{disk(interval/10/probeSyncs + time.Millisecond)}, -1, interval, VerdictTight},
		"tight still":                   {[]Probed{disk(interval / 2 / probeSyncs)}, -1, interval, VerdictTight},
		"slow":                          {[]Probed{disk(interval/2/probeSyncs + time.Millisecond)}, -1, interval, VerdictSlow},
		"a slow server that is written": {[]Probed{disk(1), server(interval)}, 1, interval, VerdictSlow},
		"a slow server that is read":    {[]Probed{disk(1), server(interval), server(1)}, 2, interval, VerdictGood},
		"slow storage":                  {[]Probed{disk(1), {Kind: "storage", Speed: speed(interval)}}, -1, interval, VerdictSlow},
		"no interval":                   {[]Probed{disk(time.Hour)}, -1, 0, VerdictOff},
		"not measured":                  {[]Probed{disk(1), {Kind: "server", Err: errors.New("x")}}, -1, interval, VerdictUnknown},
	} {
		j := JobProbe{Interval: c.every, Syncs: probeSyncs, Puts: probePuts, Trips: probeTrips}
		var used []int
		for i := range c.places {
			used = append(used, i)
		}
		j.judge(c.places, used, c.slowest)
		if j.Verdict != c.want {
			t.Errorf("%s: %s, want %s: %+v", what, j.Verdict, c.want, j)
		}
		if want := int64(1e6 * c.every.Seconds() / 2); c.want != VerdictUnknown && j.Bytes != want {
			t.Errorf("%s: %d bytes in half of the interval, want %d", what, j.Bytes, want)
		}
	}
}

// Goal: what a probe says a checkpoint makes durable is what one does. Method: the fsyncs of real checkpoints of a job without
// state, whose output is files: those of the files are not the checkpoint's own disk's.
func TestProbeCountsSyncs(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	eng, err := Open(t.TempDir(), &Options{Settings: map[string]string{"parallelism.default": "1", "execution.checkpointing.interval": "1 h"}})
	if err != nil {
		t.Fatal(err)
	}
	defer eng.Close()
	var job *Job
	for _, text := range []string{
		`CREATE TABLE g (id BIGINT) WITH ('connector' = 'datagen', 'rows-per-second' = '1000')`,
		`CREATE TABLE f (id BIGINT) WITH ('connector' = 'filesystem', 'format' = 'json', 'path' = '` + t.TempDir() + `')`,
		`INSERT INTO f SELECT id FROM g`,
	} {
		res, err := eng.Exec(ctx, text)
		if err != nil {
			t.Fatal(err)
		}
		job = res.Job
	}
	counts := map[int64]int{}
	const rounds = 6
	last := int64(0)
	for i := range rounds {
		id, err := job.Checkpoint(ctx)
		if err != nil {
			t.Fatal(err)
		}
		for job.Status().Checkpoint.Committed < id && ctx.Err() == nil {
			time.Sleep(time.Millisecond)
		}
		n := job.Status().Syncs.Count
		if i > 0 {
			counts[n-last]++
		}
		last = n
	}
	t.Logf("fsyncs of a checkpoint: %v", counts)
	for n := range counts {
		if n < probeSyncs-2 || n > probeSyncs+2 { // cleaning may have made some of its own
			t.Errorf("checkpoints made %v fsyncs, a probe counts on %d", counts, probeSyncs)
			break
		}
	}
}

// A directory that is there keeps what is in it and nothing else, one that is not goes again; a place that cannot be written is named.
func TestProbeCleansUp(t *testing.T) {
	ctx := context.Background()
	dir := t.TempDir()
	state := filepath.Join(dir, "a", "b", "state")
	script := `CREATE TABLE g (id BIGINT) WITH ('connector' = 'datagen');
		CREATE TABLE f (id BIGINT) WITH ('connector' = 'blackhole');
		SET 'execution.checkpointing.dir' = 'file://` + dir + `/kept'; INSERT INTO f SELECT id FROM g;`
	if err := os.WriteFile(filepath.Join(dir, "mine"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	r, err := Probe(ctx, ProbeOptions{Scripts: []string{script}, StateDir: state, Within: 50 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Places) != 2 || len(r.Jobs) != 1 || r.Jobs[0].Puts != probePuts || r.Jobs[0].Verdict == VerdictUnknown {
		t.Fatalf("%+v", r)
	}
	for _, q := range r.Places {
		if q.Err != nil || q.Samples < 1 || q.P50 <= 0 || q.P99 < q.P50 || q.Bytes == 0 || q.BytesPerSecond <= 0 {
			t.Errorf("%+v", q)
		}
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 1 || left[0].Name() != "mine" {
		t.Errorf("left behind: %v, %v", left, err)
	}
	r, err = Probe(ctx, ProbeOptions{Scripts: []string{script}, StateDir: filepath.Join(dir, "mine", "state"), Within: 50 * time.Millisecond})
	if err != nil || r.Places[0].Err == nil || r.Jobs[0].Verdict != VerdictUnknown {
		t.Errorf("a state directory below a file: %+v, %v", r, err)
	}
	if _, err := Probe(ctx, ProbeOptions{Scripts: []string{"SELECT 1"}, StateDir: state}); err == nil {
		t.Error("a script without a job is measured for")
	}
}
