package exec

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/sql/types"
	"github.com/zeebo/xxh3"
)

var oneColumn = types.NewSchema(types.Column{Name: "v", Type: types.BigIntType})

// numbered is a batch of one row that says what it is.
func numbered(v int64) *pooled {
	p := newPooled(oneColumn, nil)
	p.Cols[0].I64, p.N = []int64{v}, 1
	return p
}

// only has rows of s on every port.
func only(s *types.Schema) ports { return func(int) (*types.Schema, uint64) { return s, 0 } }

// channelFeeds are what the channels of a gate carry: rows that are numbered per channel, watermarks, idleness, and barriers from 1
// to epochs. epoch tells of each row which barrier comes next behind it.
func channelFeeds(r *rand.Rand, channels, epochs int) (inputs [][]message, epoch map[int64]int) {
	inputs, epoch = make([][]message, channels), map[int64]int{}
	for i := range inputs {
		n, wm := int64(0), Watermark(0)
		skew := 1 + r.IntN(7)
		for e := 1; e <= epochs+1; e++ {
			for range r.IntN(2 * skew) {
				switch r.IntN(6) {
				case 0:
					wm += Watermark(r.IntN(5))
					inputs[i] = append(inputs[i], message{kind: msgWatermark, input: i, watermark: wm})
				case 1:
					inputs[i] = append(inputs[i], message{kind: msgStatus, input: i, idle: r.IntN(2) == 0})
				default:
					v := int64(i)<<32 | n
					n++
					epoch[v] = e
					inputs[i] = append(inputs[i], message{kind: msgRows, input: i, rows: numbered(v)})
				}
			}
			if e <= epochs {
				inputs[i] = append(inputs[i], message{kind: msgBarrier, input: i, barrier: checkpoint.Barrier{ID: checkpoint.ID(e)}})
			}
		}
	}
	return inputs, epoch
}

// gateRun drives a gate in random steps, some barriers overtaking, and keeps what its task would see.
type gateRun struct {
	t     *testing.T
	seed  uint64
	g     *gate
	epoch map[int64]int
	hasty map[checkpoint.ID]bool // barriers that overtake
	given map[checkpoint.ID]bool // checkpoints given up

	rows    []int64 // processed, in order
	passed  []checkpoint.ID
	seen    map[checkpoint.ID][]int64 // rows processed before the barrier, of those that overtook
	flights map[checkpoint.ID]*flight // complete ones
	log     []string                  // since the last barrier
}

func (r *gateRun) fatal(format string, args ...any) {
	r.t.Helper()
	r.t.Fatalf("seed %d: %s", r.seed, fmt.Sprintf(format, args...))
}

func (r *gateRun) events(events []gateEvent) {
	for _, e := range events {
		switch e.kind {
		case msgRows:
			v := e.rows.Cols[0].I64[0]
			r.rows = append(r.rows, v)
			r.log = append(r.log, fmt.Sprint("row ", v))
		case msgWatermark:
			r.log = append(r.log, fmt.Sprint("watermark ", e.watermark))
		case msgStatus:
			r.log = append(r.log, fmt.Sprint("idle ", e.idle))
		case msgGivenUp:
			if !r.given[e.barrier.ID] {
				r.fatal("barrier %d passes as given up", e.barrier.ID)
			}
			r.passed = append(r.passed, e.barrier.ID)
		case msgBarrier:
			r.barrier(e.barrier.ID)
		}
	}
	if c := r.g.capture; c != nil && c.complete() {
		r.g.capture = nil
		f, err := readFlight(c.file(), only(oneColumn))
		if err != nil {
			r.fatal("%v", err)
		}
		r.flights[c.id] = f
	}
}

// barrier checks that a barrier cuts the rows between two epochs, or will do so with what is in flight.
func (r *gateRun) barrier(id checkpoint.ID) {
	if n := len(r.passed); n > 0 && r.passed[n-1] >= id {
		r.fatal("barrier %d after %d", id, r.passed[n-1])
	}
	r.passed, r.log = append(r.passed, id), nil
	if r.g.capture != nil && r.g.capture.id == id {
		r.seen[id] = slices.Clone(r.rows)
		return
	}
	for v, e := range r.epoch {
		if got, want := slices.Contains(r.rows, v), e <= int(id); got != want {
			r.fatal("aligned barrier %d: row %d of epoch %d was processed before it: %v", id, v, e, got)
		}
	}
}

// step lets one thing happen: a message arrives, a barrier overtakes, or a message is accepted.
func (r *gateRun) step(rnd *rand.Rand, inputs [][]message) {
	if i := rnd.IntN(2 * len(inputs)); i < len(inputs) && len(inputs[i]) > 0 {
		m := inputs[i][0]
		inputs[i] = inputs[i][1:]
		r.g.arrive(m)
		r.events(nil)
		return
	}
	if b, ok := r.g.waiting(); ok && r.hasty[b.ID] && !r.given[b.ID] && rnd.IntN(3) == 0 {
		r.events(r.g.overtake(b))
		return
	}
	if m, ok := r.g.replayed(); ok {
		r.events(r.g.accept(m))
	}
}

// check compares what an overtaken barrier has cut: what was processed before it and what was in flight are the rows before
// it, each once, and in flight are, per channel, those that follow the processed ones, in order.
func (r *gateRun) check() {
	for id, f := range r.flights {
		got := slices.Clone(r.seen[id])
		next := map[int64]int64{}
		for _, v := range got {
			next[v>>32] = v&0xffffffff + 1
		}
		for _, m := range f.messages {
			if m.kind != msgRows {
				continue
			}
			v := m.rows.Cols[0].I64[0]
			if v>>32 != int64(m.input) || v&0xffffffff != next[v>>32] {
				r.fatal("checkpoint %d: row %d in flight on channel %d, expected row %d", id, v&0xffffffff, m.input, next[v>>32])
			}
			next[v>>32]++
			got = append(got, v)
		}
		slices.Sort(got)
		if n := len(got); len(slices.Compact(got)) != n {
			r.fatal("checkpoint %d: rows processed and in flight", id)
		}
		want := 0
		for _, e := range r.epoch {
			if e <= int(id) {
				want++
			}
		}
		if len(got) != want || slices.ContainsFunc(got, func(v int64) bool { return r.epoch[v] > int(id) }) {
			r.fatal("checkpoint %d has %d rows, want %d of its epochs", id, len(got), want)
		}
	}
}

// TestGateOvertakes: with 2 to 8 skewed inputs, aligned barriers, ones that overtake from the start or in the middle of their
// alignment, and checkpoints given up in between: no checkpoint mixes two epochs, every barrier passes once and in order, and
// every row is processed once and in the order of its channel.
func TestGateOvertakes(t *testing.T) {
	overtook, recorded := 0, 0
	for seed := range uint64(600) {
		rnd := rand.New(rand.NewPCG(seed, 5))
		n, epochs := 2+rnd.IntN(7), 1+rnd.IntN(5)
		inputs, epoch := channelFeeds(rnd, n, epochs)
		r := &gateRun{t: t, seed: seed, g: newGate(ExactlyOnce, make([]int, n)), epoch: epoch, hasty: map[checkpoint.ID]bool{},
			given: map[checkpoint.ID]bool{}, seen: map[checkpoint.ID][]int64{}, flights: map[checkpoint.ID]*flight{}}
		for e := 1; e <= epochs; e++ {
			r.hasty[checkpoint.ID(e)] = rnd.IntN(3) > 0
		}
		for left := true; left; {
			r.step(rnd, inputs)
			// A checkpoint starts when the one before it is complete or given up.
			for id := checkpoint.ID(1); id < r.g.newest.ID; id++ {
				if !slices.Contains(r.passed, id) || r.seen[id] != nil && r.flights[id] == nil {
					if r.given[id] = true; r.g.capture != nil && r.g.capture.id == id {
						r.g.forgetCapture()
					}
				}
			}
			left = r.g.at < len(r.g.replay) || slices.ContainsFunc(inputs, func(l []message) bool { return len(l) > 0 })
		}
		r.check()
		overtook += len(r.seen)
		for _, f := range r.flights {
			recorded += len(f.messages)
		}
		if len(r.rows) != len(epoch) || len(r.passed) != epochs {
			r.fatal("%d of %d rows, %d of %d barriers", len(r.rows), len(epoch), len(r.passed), epochs)
		}
		next := make([]int64, n)
		for _, v := range r.rows {
			if v&0xffffffff != next[v>>32] {
				r.fatal("row %d of channel %d where %d is next", v&0xffffffff, v>>32, next[v>>32])
			}
			next[v>>32]++
		}
	}
	if overtook < 300 || recorded < 1000 {
		t.Fatalf("%d barriers overtook %d messages: the test tries too little", overtook, recorded)
	}
}

// TestGateResumes: a gate that is restored from a checkpoint with rows in flight goes on as the one that took it did: the same
// rows, watermarks and idleness, per channel and in order.
func TestGateResumes(t *testing.T) {
	for seed := range uint64(400) {
		rnd := rand.New(rand.NewPCG(seed, 6))
		n := 2 + rnd.IntN(7)
		inputs, epoch := channelFeeds(rnd, n, 1)
		var again []message // what producers say after a restore
		for i, l := range inputs {
			wm, idle := message{kind: msgWatermark, input: i, watermark: NoWatermark}, message{kind: msgStatus, input: i}
			for _, m := range l[:slices.IndexFunc(l, func(m message) bool { return m.kind == msgBarrier })] {
				switch m.kind {
				case msgWatermark:
					wm = m
				case msgStatus:
					idle = m
				case msgRows:
					idle.idle = false
				}
			}
			again = append(again, wm, idle)
		}
		r := &gateRun{t: t, seed: seed, g: newGate(ExactlyOnce, make([]int, n)), epoch: epoch, hasty: map[checkpoint.ID]bool{1: true},
			given: map[checkpoint.ID]bool{}, seen: map[checkpoint.ID][]int64{}, flights: map[checkpoint.ID]*flight{}}
		for len(r.passed) == 0 {
			r.step(rnd, inputs)
			if b, ok := r.g.waiting(); ok && len(r.passed) == 0 {
				r.events(r.g.overtake(b))
			}
		}
		out := r.g.out
		// All that is in flight arrives, in any order; then it is processed.
		var before, after [][]message
		for i, l := range inputs {
			k := slices.IndexFunc(l, func(m message) bool { return m.kind == msgBarrier })
			if k < 0 {
				before, after = append(before, nil), append(after, l)
				continue
			}
			_ = i
			before, after = append(before, l[:k+1]), append(after, l[k+1:])
		}
		for slices.ContainsFunc(before, func(l []message) bool { return len(l) > 0 }) {
			if i := rnd.IntN(n); len(before[i]) > 0 {
				r.g.arrive(before[i][0])
				before[i] = before[i][1:]
				r.events(nil)
			}
		}
		f := r.flights[1]
		if f == nil {
			r.fatal("the checkpoint is not complete")
		}
		restored := &gateRun{t: t, seed: seed, g: newGate(ExactlyOnce, make([]int, n)), epoch: epoch}
		restored.g.out, restored.g.again = out, true
		if !restored.g.has(f.channels) {
			r.fatal("the gate does not have the channels of the checkpoint")
		}
		restored.g.resume(f)
		var rows [2][][]int64
		for k, run := range []*gateRun{r, restored} {
			run.rows = nil
			if k == 1 {
				for _, m := range again {
					run.g.arrive(m)
				}
			}
			for _, l := range after {
				for _, m := range l {
					if k == 1 && m.kind == msgRows {
						m.rows = numbered(m.rows.Cols[0].I64[0])
					}
					run.g.arrive(m)
				}
			}
			for m, ok := run.g.replayed(); ok; m, ok = run.g.replayed() {
				run.events(run.g.accept(m))
			}
			rows[k] = make([][]int64, n)
			for _, v := range run.rows {
				rows[k][v>>32] = append(rows[k][v>>32], v)
			}
		}
		if fmt.Sprint(rows[0]) != fmt.Sprint(rows[1]) {
			r.fatal("rows %v, restored %v", rows[0], rows[1])
		}
		for i := range n {
			if a, b := r.g.inputs[i], restored.g.inputs[i]; a.wm != b.wm {
				r.fatal("channel %d: %+v, restored %+v", i, a, b)
			}
		}
	}
}

// TestFlightDamage: every cut and every flipped bit of a file of rows in flight is an error, and none is a panic.
func TestFlightDamage(t *testing.T) {
	data := someFlight()
	schema := only(wideSchema)
	if _, err := readFlight(data, schema); err != nil {
		t.Fatal(err)
	}
	for n := range data {
		if _, err := readFlight(data[:n], schema); err == nil {
			t.Fatalf("%d of %d bytes were accepted", n, len(data))
		}
		bad := slices.Clone(data)
		bad[n] ^= 1 << (n % 8)
		if _, err := readFlight(bad, schema); err == nil {
			t.Fatalf("byte %d was changed without an error", n)
		}
	}
	if _, err := readFlight(data, only(oneColumn)); err == nil {
		t.Fatal("rows of another schema were accepted")
	}
	_, err := readFlight(data, func(int) (*types.Schema, uint64) { return wideSchema, 1 })
	if err == nil || !strings.Contains(err.Error(), "this plan does not have") {
		t.Fatalf("rows of another operator: %v", err)
	}
}

// someFlight is a file of rows of every type, NULLs and kinds, and of a watermark and a status, on two channels.
func someFlight() []byte {
	r := rand.New(rand.NewPCG(1, 7))
	g := newGate(ExactlyOnce, make([]int, 2))
	g.inputs[1].wm, g.inputs[1].idle = 7, true
	c := &capture{seq: make([]uint64, 2), head: appendChannels(nil, g)}
	for i := range 4 {
		b := randomBatch(r, 20)
		p := newPooled(wideSchema, nil)
		rows := b.Sel
		if rows == nil {
			for k := range b.N {
				rows = append(rows, int32(k))
			}
		}
		p.add(b, rows)
		c.add(&message{kind: msgRows, input: i % 2, rows: p})
	}
	c.add(&message{kind: msgWatermark, input: 1, watermark: -5})
	c.add(&message{kind: msgStatus, input: 0, idle: true})
	return c.file()
}

// TestRowCodec: rows come back as they were.
func TestRowCodec(t *testing.T) {
	for seed := range uint64(50) {
		r := rand.New(rand.NewPCG(seed, 8))
		b := randomBatch(r, 1+r.IntN(500))
		p := newPooled(wideSchema, nil)
		rows := b.Sel
		if rows == nil {
			for k := range b.N {
				rows = append(rows, int32(k))
			}
		}
		p.add(b, rows)
		f := &flightReader{b: appendRows(nil, p)}
		got := f.rows(wideSchema)
		if f.err != nil || f.at != len(f.b) || got.N != p.N {
			t.Fatalf("seed %d: %v, %d of %d bytes, %d of %d rows", seed, f.err, f.at, len(f.b), got.N, p.N)
		}
		for i := range p.N {
			if g, w := rowText(&got.Batch, i), rowText(&p.Batch, i); g != w {
				t.Fatalf("seed %d: %s, want %s", seed, g, w)
			}
		}
	}
}

// FuzzReadFlight: damaged in-flight data is an error, never a panic.
func FuzzReadFlight(f *testing.F) {
	f.Add(someFlight())
	f.Fuzz(func(t *testing.T, b []byte) {
		_, _ = readFlight(b, only(wideSchema))
		r := &flightReader{b: b}
		_ = r.rows(wideSchema)
	})
}

// FuzzFlightMessage: whatever a message of what was in flight says behind right hashes is an error or rows, watermarks and statuses
// that a gate with the same channels and one with others can go on from.
func FuzzFlightMessage(f *testing.F) {
	p := newPooled(wideSchema, nil)
	b := randomBatch(rand.New(rand.NewPCG(1, 7)), 4)
	p.add(b, []int32{int32(b.Row(0))})
	f.Add(byte(msgRows), appendRows(nil, p))
	f.Add(byte(msgWatermark), binary.AppendVarint(nil, -5))
	f.Add(byte(msgStatus), []byte{1})
	f.Add(byte(msgAfresh), []byte{})
	f.Fuzz(func(t *testing.T, kind byte, payload []byte) {
		c := &capture{seq: []uint64{1}, head: appendChannels(nil, newGate(ExactlyOnce, make([]int, 1)))}
		c.body = binary.LittleEndian.AppendUint32(append(c.body, kind, 0, 1), uint32(len(payload)))
		c.body = append(c.body, payload...)
		c.body = binary.LittleEndian.AppendUint64(c.body, xxh3.Hash(c.body))
		fl, err := readFlight(c.file(), only(wideSchema))
		if err != nil {
			return
		}
		show := func(p *pooled) {
			for i := range p.N {
				_ = rowText(&p.Batch, i)
			}
		}
		g := newGate(ExactlyOnce, make([]int, 1))
		g.resume(fl)
		for m, ok := g.replayed(); ok; m, ok = g.replayed() {
			for _, e := range g.accept(m) {
				if e.kind == msgRows {
					show(e.rows)
				}
			}
		}
		var moved course
		moved.play(fl)
		err = mergeCourses([]course{moved}, func(_ *course, e gateEvent) error { show(e.rows); return nil }, func(Watermark) {})
		if err != nil {
			t.Fatal(err)
		}
	})
}

// TestResumedChannelsBeginAnew: a source subtask may read other splits after a restore than before, also with as many subtasks.
// What was in flight finds the watermark of before; what comes then must not: a channel that had come far may have rows of a
// split that is behind. A checkpoint that overtakes in between keeps that.
func TestResumedChannelsBeginAnew(t *testing.T) {
	f := &flight{channels: []flightChannel{{wm: 200}, {wm: 50}}, messages: []message{{kind: msgRows, rows: numbered(1)}}}
	for _, again := range []bool{false, true} {
		g := newGate(ExactlyOnce, make([]int, 2))
		g.out, g.again = 50, true
		g.resume(f)
		mark := func(input int, w Watermark) message {
			return message{kind: msgWatermark, input: input, watermark: w}
		}
		for _, m := range []message{mark(1, 200), {kind: msgBarrier, input: 1, barrier: checkpoint.Barrier{ID: 1}}, mark(0, 50), {kind: msgBarrier, barrier: checkpoint.Barrier{ID: 1}}} {
			g.arrive(m)
		}
		if b, _ := g.waiting(); again {
			g.overtake(b)
			next, err := readFlight(g.capture.file(), only(oneColumn))
			if err != nil {
				t.Fatal(err)
			}
			g = newGate(ExactlyOnce, make([]int, 2))
			g.out, g.again = 50, true
			g.resume(next)
			g.arrive(mark(0, 50))
			g.arrive(mark(1, 200))
		}
		g.arrive(message{kind: msgRows, rows: numbered(2)})
		for m, ok := g.replayed(); ok; m, ok = g.replayed() {
			for _, e := range g.accept(m) {
				if e.kind == msgRows && g.out != 50 {
					t.Errorf("again %v: row %d finds watermark %d", again, e.rows.Cols[0].I64[0], g.out)
				}
			}
		}
	}
}
