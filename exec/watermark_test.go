package exec

import (
	"testing"

	"github.com/streamsql/streamsql/connectors"
)

// discovering is a source of which only the discovery interval is asked.
type discovering struct {
	connectors.Source
	interval int64
}

func (d discovering) DiscoveryInterval() int64 { return d.interval }

// TestSourceAtItsEndIsNotIdle: between the read that ends the last split and the one that tells the end of the source the
// watermark may be due. Then others must not be told to go on without the subtask: its last watermark is still to come.
func TestSourceAtItsEndIsNotIdle(t *testing.T) {
	for _, c := range []struct {
		name      string
		splits    []*split
		discovery int64
		idle      bool
	}{
		{"all done", []*split{{done: true, wm: 5}, {done: true, wm: 7}}, 0, false},
		{"one has rows", []*split{{done: true, wm: 5}, {wm: 7}}, 0, false},
		{"one is idle", []*split{{done: true, wm: 5}, {idle: true, wm: 7}}, 0, true},
		{"an idle one is done", []*split{{idle: true, done: true, wm: 5}}, 0, false},
		{"all done, others may come", []*split{{done: true, wm: 5}}, 1, true},
		{"none yet", nil, 1, true},
	} {
		s := &sourceReader{m: &member{}, src: discovering{interval: c.discovery}, splits: c.splits, emitted: NoWatermark}
		if err := s.advance(); err != nil {
			t.Fatal(err)
		}
		if s.idle != c.idle {
			t.Errorf("%s: idle %v", c.name, s.idle)
		}
	}
}
