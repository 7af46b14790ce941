package repl

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/streamsql/streamsql"
	"github.com/streamsql/streamsql/exec"
)

// Progress redraws one line on a terminal while jobs run.
type Progress struct {
	eng   *streamsql.Engine
	out   io.Writer
	stop  chan struct{}
	ended sync.WaitGroup

	mu    sync.Mutex
	drawn bool
	last  map[string]sample
}

// sample is a job's row counts at a moment.
type sample struct {
	at      time.Time
	in, out int64
}

// NewProgress starts to draw the running jobs of eng on out, every second, until Close.
func NewProgress(eng *streamsql.Engine, out io.Writer) *Progress {
	p := &Progress{eng: eng, out: out, stop: make(chan struct{}), last: map[string]sample{}}
	p.ended.Add(1)
	go func() {
		defer p.ended.Done()
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for {
			select {
			case <-p.stop:
				return
			case now := <-tick.C:
				p.draw(now)
			}
		}
	}()
	return p
}

func (p *Progress) draw(now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var parts []string
	for _, j := range p.eng.Jobs() {
		st := j.Status()
		if st.State.Ended() {
			continue
		}
		f := j.Flow(st)
		s := sample{now, f.In, f.Out}
		before, seen := p.last[j.ID()]
		if !seen {
			before = sample{at: st.Started}
		}
		p.last[j.ID()] = s
		parts = append(parts, progressLine(st, f, before, s))
	}
	if len(parts) > 0 {
		fmt.Fprintf(p.out, "\r\x1b[K%s", strings.Join(parts, " | "))
		p.drawn = true
	}
}

// progressLine is one job: rows a second since before, watermark, last checkpoint, lag.
func progressLine(st streamsql.Status, f streamsql.Flow, before, now sample) string {
	secs := max(now.at.Sub(before.at).Seconds(), 0.001)
	text := fmt.Sprintf("%s %s: in %s/s, out %s/s", st.Name, strings.ToLower(st.State.String()),
		short(float64(now.in-before.in)/secs), short(float64(now.out-before.out)/secs))
	if f.Watermark > exec.NoWatermark && f.Watermark < exec.MaxWatermark {
		text += ", watermark " + watermarkText(f.Watermark)
	}
	if st.Checkpoint.Last > 0 {
		text += fmt.Sprintf(", checkpoint %d %s ago", st.Checkpoint.Last, now.at.Sub(st.Checkpoint.At).Round(time.Second))
	}
	if f.Lag > 0 {
		text += ", lag " + short(float64(f.Lag))
	}
	if st.Restarts > 0 {
		text += ", restarts " + fmt.Sprint(st.Restarts)
	}
	return text
}

// watermarkText is a watermark in UTC; extremes outside the calendar as a number.
func watermarkText(w exec.Watermark) string {
	at := time.UnixMilli(int64(w)).UTC()
	if at.Year() < 0 || at.Year() > 9999 {
		return fmt.Sprint(int64(w))
	}
	return at.Format("2006-01-02 15:04:05")
}

// short is a count of three or four digits.
func short(v float64) string {
	switch {
	case v >= 1e6:
		return fmt.Sprintf("%.1fM", v/1e6)
	case v >= 1e4:
		return fmt.Sprintf("%.0fk", v/1e3)
	}
	return fmt.Sprintf("%.0f", v)
}

// Clear removes the line, before other output.
func (p *Progress) Clear() {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.drawn {
		fmt.Fprint(p.out, "\r\x1b[K")
		p.drawn = false
	}
}

// Close ends the drawing and removes the line. Close and Clear of a nil Progress do nothing.
func (p *Progress) Close() {
	if p == nil {
		return
	}
	close(p.stop)
	p.ended.Wait()
	p.Clear()
}

// Summary is what a job did from its start to now, on one line.
func Summary(j *streamsql.Job, now time.Time) string {
	return summary(j.Status(), j.Flow(j.Status()), now)
}

func summary(st streamsql.Status, f streamsql.Flow, now time.Time) string {
	took := time.Duration(0)
	if !st.Started.IsZero() {
		took = now.Sub(st.Started).Round(time.Millisecond)
	}
	state := strings.ToLower(st.State.String())
	if st.State == exec.Suspended {
		state = "stopped"
	}
	text := fmt.Sprintf("job %s %s after %s: %s in, %s out, %s", st.Name, state, took, counted(f.In, "row"),
		counted(f.Out, "row"), counted(int64(st.Checkpoint.Completed), "checkpoint"))
	if mib := st.Checkpoint.Written >> 20; mib > 0 {
		text += fmt.Sprintf(" of %d MiB", mib)
	}
	if st.LateDropped > 0 {
		text += ", " + counted(st.LateDropped, "late row") + " dropped"
	}
	if st.Skipped > 0 {
		text += ", " + counted(st.Skipped, "bad record") + " skipped"
	}
	if st.Restarts > 0 {
		text += ", " + counted(int64(st.Restarts), "restart")
	}
	return text
}

func counted(n int64, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
