package main

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/streamsql/streamsql"
	"github.com/streamsql/streamsql/exec"
)

// progress redraws one line on a terminal while jobs run.
type progress struct {
	eng   *streamsql.Engine
	out   io.Writer
	stop  chan struct{}
	ended sync.WaitGroup
	mu    sync.Mutex
	drawn bool
	last  map[string]sample
}

type sample struct {
	at      time.Time
	in, out int64
}

func newProgress(eng *streamsql.Engine, out io.Writer, on bool) *progress {
	p := &progress{eng: eng, out: out, stop: make(chan struct{}), last: map[string]sample{}}
	if !on {
		return p
	}
	p.ended.Add(1)
	go func() {
		defer p.ended.Done()
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for {
			select {
			case <-p.stop:
				return
			case <-tick.C:
				p.draw()
			}
		}
	}()
	return p
}

func (p *progress) draw() {
	var parts []string
	for _, j := range p.eng.Jobs() {
		if st := j.Status(); !st.State.Ended() {
			parts = append(parts, p.line(j.ID(), st))
		}
	}
	if len(parts) == 0 {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	fmt.Fprintf(p.out, "\r\x1b[K%s", strings.Join(parts, "   "))
	p.drawn = true
}

// line is one job: rows per second, watermark, last checkpoint, lag.
func (p *progress) line(id string, st streamsql.Status) string {
	now := sample{at: time.Now()}
	watermark := exec.NoWatermark
	for _, n := range st.Nodes {
		if n.RowsIn == 0 && n.RowsOut > 0 || len(st.Nodes) == 1 {
			now.in += n.RowsOut
		}
		watermark = max(watermark, n.Watermark)
	}
	if k := len(st.Nodes); k > 0 {
		now.out = st.Nodes[k-1].RowsIn
	}
	before := p.last[id]
	p.last[id] = now
	secs := now.at.Sub(before.at).Seconds()
	if before.at.IsZero() || secs <= 0 {
		secs = 1
	}
	lag := int64(0)
	for _, s := range st.Splits {
		lag += max(s.Lag, 0)
	}
	text := fmt.Sprintf("%s: in %s/s out %s/s", st.State, count(float64(now.in-before.in)/secs), count(float64(now.out-before.out)/secs))
	if watermark > exec.NoWatermark && watermark < exec.MaxWatermark {
		text += " watermark " + time.UnixMilli(int64(watermark)).UTC().Format("2006-01-02 15:04:05")
	}
	if st.Checkpoint.Last > 0 {
		text += fmt.Sprintf(" checkpoint %d %s ago", st.Checkpoint.Last, time.Since(st.Checkpoint.At).Round(time.Second))
	}
	if lag > 0 {
		text += " lag " + count(float64(lag))
	}
	if st.Restarts > 0 {
		text += fmt.Sprintf(" restarts %d", st.Restarts)
	}
	return text
}

func count(v float64) string {
	switch {
	case v >= 1e6:
		return fmt.Sprintf("%.1fM", v/1e6)
	case v >= 1e4:
		return fmt.Sprintf("%.0fk", v/1e3)
	}
	return fmt.Sprintf("%.0f", v)
}

// clear removes the line, before other output.
func (p *progress) clear() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.drawn {
		fmt.Fprint(p.out, "\r\x1b[K")
		p.drawn = false
	}
}

func (p *progress) close() {
	close(p.stop)
	p.ended.Wait()
	p.clear()
}
