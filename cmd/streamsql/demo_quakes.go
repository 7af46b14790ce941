package main

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/streamsql/streamsql/examples/earthquakes"
)

//go:embed demo.sql
var demoSQL string

const (
	quakesIn         = "quakes"
	quakesOut        = "quakes_per_hour"
	quakesPartitions = 2
)

// hourly is a row of the result.
type hourly struct {
	Hour      string  `json:"hour_start"`
	Magnitude int     `json:"magnitude"`
	Quakes    int64   `json:"quakes"`
	Strongest float64 `json:"strongest"`
}

// String is the row in one line.
func (h hourly) String() string {
	return fmt.Sprintf("%s magnitude %d: %d quakes, strongest %g", h.Hour, h.Magnitude, h.Quakes, h.Strongest)
}

// expectedHours computes the job's result from the file, without the engine.
func expectedHours(lines [][]byte) (map[string]hourly, error) {
	out := map[string]hourly{}
	for i, line := range lines {
		var q struct {
			TS  time.Time `json:"ts"`
			Mag float64   `json:"mag"`
		}
		if err := json.Unmarshal(line, &q); err != nil {
			return nil, fmt.Errorf("earthquake %d: %w", i+1, err)
		}
		h := hourly{
			Hour:      q.TS.UTC().Truncate(time.Hour).Format("2006-01-02 15:04:05Z"),
			Magnitude: int(q.Mag), Quakes: 1, Strongest: q.Mag,
		}
		if old, ok := out[h.key()]; ok {
			h.Quakes += old.Quakes
			h.Strongest = max(h.Strongest, old.Strongest)
		}
		out[h.key()] = h
	}
	return out, nil
}

func (h hourly) key() string { return fmt.Sprint(h.Hour, h.Magnitude) }

// earthquakes runs the main job, kills it twice and compares its output with the expected result.
func (d *demo) earthquakes(ctx context.Context, rate int) (exact bool, err error) {
	lines := bytes.Split(bytes.TrimSpace(earthquakes.JSONL), []byte("\n"))
	expected, err := expectedHours(lines)
	if err != nil {
		return false, err
	}
	var bounds []string
	for p := range quakesPartitions {
		bounds = append(bounds, fmt.Sprintf("partition:%d,offset:%d", p, (len(lines)+quakesPartitions-1-p)/quakesPartitions))
	}
	sql := strings.ReplaceAll(demoSQL, "{{bounds}}", strings.Join(bounds, ";"))
	file := filepath.Join(d.dir, "earthquakes.sql")
	if err := os.WriteFile(file, []byte(sql), 0o644); err != nil {
		return false, err
	}
	if err := d.kafka.create(ctx, quakesPartitions, quakesIn, quakesOut); err != nil {
		return false, err
	}
	fmt.Fprintf(d.out, "\n%s\n", sql)
	var loaded atomic.Int64
	loading, stop := context.WithCancel(ctx)
	loadEnded := make(chan struct{})
	go func() {
		defer close(loadEnded)
		d.loadQuakes(loading, lines, rate, &loaded)
	}()
	defer func() { stop(); <-loadEnded }()
	d.say("%d earthquakes go into topic %q, %d per second", len(lines), quakesIn, rate)

	args := []string{"run", file, "--embedded-kafka-addr", d.broker.Addr(), "--state-dir", filepath.Join(d.dir, "state")}
	args = append(args, d.settings...)
	for kill := 1; kill <= 2; kill++ {
		c, err := d.start(ctx, nil, args...)
		if err != nil {
			return false, err
		}
		d.say("job started (pid %d)", c.cmd.Process.Pid)
		// In mid-flight: enough is loaded, and rows are in a transaction that no checkpoint has committed.
		open, err := d.pauseOpen(ctx, c, int64(len(lines))*int64(kill)/3, &loaded)
		if err != nil {
			return false, err
		}
		c.kill()
		seen, err := d.kafka.read(ctx, quakesOut, kgo.ReadCommitted())
		if err != nil {
			return false, err
		}
		d.say("kill -9 %d: %d earthquakes loaded, %d result rows committed, %d more in an open transaction", c.cmd.Process.Pid, loaded.Load(), len(seen), open)
	}
	c, err := d.start(ctx, nil, args...)
	if err != nil {
		return false, err
	}
	d.say("job started (pid %d)", c.cmd.Process.Pid)
	<-c.done
	if ctx.Err() != nil {
		return false, ctx.Err()
	}
	if c.err != nil {
		return false, c.failure("the job failed")
	}
	d.say("the job has read all %d earthquakes and ended", loaded.Load())
	return d.compareHours(ctx, expected)
}

// loadQuakes produces the events in order at a steady pace.
func (d *demo) loadQuakes(ctx context.Context, lines [][]byte, rate int, loaded *atomic.Int64) {
	tick := time.NewTicker(time.Second / 20)
	defer tick.Stop()
	began, next := time.Now(), 0
	for next < len(lines) {
		select {
		case <-ctx.Done():
			return
		case now := <-tick.C:
			due := min(len(lines), 1+int(now.Sub(began).Seconds()*float64(rate)))
			for ; next < due; next++ {
				d.kafka.load(ctx, quakesIn, int32(next%quakesPartitions), lines[next], loaded)
			}
		}
	}
}

// waitOpen waits until at least loaded events are in the topic and the job has written rows that are not committed.
func (d *demo) waitOpen(ctx context.Context, c *child, want int64, loaded *atomic.Int64) (open int64, err error) {
	for {
		if loaded.Load() >= want {
			if open, err = d.kafka.open(ctx, quakesOut); err != nil || open > 0 {
				return open, err
			}
		}
		select {
		case <-c.done:
			return 0, c.failure("the job ended before it could be killed")
		case <-ctx.Done():
			return 0, ctx.Err()
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// pauseOpen is waitOpen that leaves the child stopped, so that the next checkpoint does not commit the rows before the kill.
func (d *demo) pauseOpen(ctx context.Context, c *child, want int64, loaded *atomic.Int64) (open int64, err error) {
	for {
		if _, err := d.waitOpen(ctx, c, want, loaded); err != nil {
			return 0, err
		}
		if err := c.cmd.Process.Signal(syscall.SIGSTOP); err != nil && !errors.Is(err, os.ErrProcessDone) { // waitOpen tells
			return 0, err
		}
		if open, err = d.kafka.open(ctx, quakesOut); err != nil || open > 0 {
			return open, err
		}
		if err := c.cmd.Process.Signal(syscall.SIGCONT); err != nil && !errors.Is(err, os.ErrProcessDone) {
			return 0, err
		}
	}
}

// compareHours reads the result as a consumer would and prints how it differs from the expected one.
func (d *demo) compareHours(ctx context.Context, expected map[string]hourly) (exact bool, err error) {
	committed, err := d.kafka.read(ctx, quakesOut, kgo.ReadCommitted())
	if err != nil {
		return false, err
	}
	all, err := d.kafka.read(ctx, quakesOut, kgo.ReadUncommitted())
	if err != nil {
		return false, err
	}
	open, err := d.kafka.open(ctx, quakesOut)
	if err != nil {
		return false, err
	}
	seen, wrong, unknown := map[string]int{}, 0, 0
	for _, v := range committed {
		var h hourly
		if err := json.Unmarshal(v, &h); err != nil {
			return false, fmt.Errorf("result row %s: %w", v, err)
		}
		want, ok := expected[h.key()]
		switch {
		case !ok:
			unknown++
		case want != h:
			wrong++
			fmt.Fprintf(d.out, "        wrong: %s\n        want:  %s\n", h, want)
		}
		seen[h.key()]++
	}
	once, twice, missing := 0, 0, 0
	for k := range expected {
		switch n := seen[k]; {
		case n == 1:
			once++
		case n == 0:
			missing++
		default:
			twice += n - 1
		}
	}
	fmt.Fprintf(d.out, "\n        what a read_committed consumer of %q saw, against the result computed from the file\n", quakesOut)
	for _, l := range []struct {
		what string
		n    int
	}{
		{"expected rows", len(expected)}, {"rows seen once", once}, {"duplicates", twice}, {"missing", missing},
		{"wrong values", wrong}, {"unexpected rows", unknown}, {"rows left in open transactions", int(open)},
		{"rows of killed transactions, never visible", len(all) - len(committed)},
	} {
		fmt.Fprintf(d.out, "        %-44s %5d\n", l.what, l.n)
	}
	return once == len(expected) && twice+missing+wrong+unknown+int(open) == 0, nil
}
