package op

import (
	"encoding/binary"
	"math"
	"slices"
	"sort"

	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/exec"
	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/types"
)

// waitLog is keyed state of rows that wait for a time. They lie encoded in chunks, rows of one table, by slice of time and
// key group and in a chunk in the order of their arrival, so that a batch adds a few runs of bytes, and time that passes
// reads and forgets whole chunks. Of a chunk from which some rows have left nothing is written: those with times up to
// left of its key group have, and that is saved at barriers.
//
// In memory are the chunks' places and bounds.
type waitLog struct {
	table  checkpoint.Table
	codec  *rowCodec
	cols   int  // of the input; then waitCols
	byTime bool // rows leave in the order of time, then of arrival; else in that of arrival
	slices []*waitSlice
	spare  []*waitSlice
	width  int64 // ms of the next slice
	pass   int   // waitPass
	// peers, with byTime: rows of one key group and time come together, or if they are many twice, see phase.
	peers bool
	phase waitPhase // of the rows that are leaving
	left  [checkpoint.KeyGroups]int64
	seq   uint64 // of the last row

	in    batch.Batch // of add: the input with what waitCols hold
	own   [waitCols]*batch.Vec
	enc   encodedRows
	runs  []waitRun
	run   []int32 // per row added, its run
	order []int32 // rows added, by run
	keys  checkpoint.Keys
	one   checkpoint.Keys
	refs  []checkpoint.Ref
	found []int32

	due     []dueChunk
	entries []dueRow
	sorted  []dueRow // memory of entries
	counts  []int32
	rows    [][]byte
	out     *batch.Builder
	res     batch.Batch
}

// What a row has behind its columns: the time it waits for, the time it is ordered by, and its number of arrival with
// its kind in the lower bits.
const (
	waitUntil = iota
	waitTime
	waitSeq
	waitCols
)

// waitPhase tells how rows leave.
type waitPhase uint8

const (
	waitWhole   waitPhase = iota // all of a time
	waitEnter                    // some of a time, the others follow, then
	waitResults                  // all of them come once more
)

const (
	waitKindBits  = 2
	waitChunkMax  = 16 << 10 // bytes of a chunk; a single row may be larger
	waitSliceMin  = 1000     // ms
	waitSlicesMax = 256      // slices, above which new ones are wider
	waitPass      = 8 << 20  // bytes of chunks that are read at a time, see waitLog.pass
	waitKeySize   = 13       // slice, key group, number of the chunk
)

// waitSlice are the chunks of rows with times from start on and before end.
type waitSlice struct {
	start, end int64
	first      int64 // a lower bound of the times waited for
	groups     [checkpoint.KeyGroups][]waitChunk
	touched    [checkpoint.KeyGroups]int32 // while rows are added, the run + 1
}

// waitChunk is a chunk: of rows that wait for times from first to last.
type waitChunk struct {
	slice       int64 // in its key
	number      uint32
	size        int32
	first, last int64
	born        int64 // processing time of its first row, 0 = unknown
	partly      bool  // rows have left that are still there
}

// waitRun are the rows of a batch that go to one key group of one slice.
type waitRun struct {
	s          *waitSlice
	group      int
	rows, size int32
	at         int32 // where its rows begin in order
}

// openWaitLog opens the state named name.
func openWaitLog(s exec.Subtask, name string, in *types.Schema, byTime bool) (*waitLog, error) {
	ext := &types.Schema{Columns: slices.Clone(in.Columns)}
	for _, n := range [waitCols]string{"until", "time", "seq"} {
		ext.Columns = append(ext.Columns, types.Column{Name: n, Type: types.BigIntType})
	}
	w := &waitLog{codec: newRowCodec(ext), cols: len(in.Columns), byTime: byTime, width: waitSliceMin, pass: waitPass, out: batch.NewBuilder(ext)}
	for i := range w.own {
		w.own[i] = batch.NewVec(types.BigIntType, 0)
	}
	for g := range w.left {
		w.left[g] = math.MinInt64
	}
	var err error
	w.table, err = s.Table(checkpoint.TableOptions{Name: name, Format: "wait/1;" + slottedFormat(ext)})
	if err != nil {
		return nil, err
	}
	return w, w.restore()
}

// restore finds the chunks in state.
func (w *waitLog) restore() error {
	at := map[int64]*waitSlice{}
	damaged := false
	err := w.table.Visit(func(key, val []byte) bool {
		if len(key) == 1 && len(val) == 8 {
			w.left[key[0]%checkpoint.KeyGroups] = word(val, 0)
			return true
		}
		if damaged = len(key) != waitKeySize; damaged {
			return false
		}
		c := waitChunk{slice: fromOrderedTime(key), number: binary.BigEndian.Uint32(key[9:]), size: int32(len(val)), first: maxTime, last: minTime}
		damaged = !w.each(val, func(row []byte) {
			until := w.hidden(row, waitUntil)
			c.first, c.last = min(c.first, until), max(c.last, until)
			w.seq = max(w.seq, uint64(w.hidden(row, waitSeq))>>waitKindBits)
		})
		s := at[c.slice]
		if s == nil {
			s = &waitSlice{start: c.slice, end: c.slice, first: math.MaxInt64}
			at[c.slice] = s
		}
		s.add(int(key[8]%checkpoint.KeyGroups), c)
		return !damaged
	})
	if err != nil {
		return err
	}
	if damaged {
		return errWaitState
	}
	w.join(at)
	return nil
}

// join makes the slices of those found. Subtasks may have cut time differently: slices that overlap become one.
func (w *waitLog) join(at map[int64]*waitSlice) {
	for _, s := range at {
		w.slices = append(w.slices, s)
	}
	slices.SortFunc(w.slices, func(a, b *waitSlice) int { return compare(a.start, b.start) })
	joined := w.slices[:0]
	for _, s := range w.slices {
		if n := len(joined); n > 0 && joined[n-1].end > s.start {
			for g, cs := range s.groups {
				for _, c := range cs {
					joined[n-1].add(g, c)
				}
			}
			continue
		}
		joined = append(joined, s)
	}
	w.slices = joined
	for _, s := range w.slices {
		for g := range s.groups {
			slices.SortFunc(s.groups[g], func(a, b waitChunk) int { return compare(int64(a.number), int64(b.number)) })
		}
	}
}

func (s *waitSlice) add(g int, c waitChunk) {
	s.groups[g] = append(s.groups[g], c)
	s.first, s.end = min(s.first, c.first), max(s.end, c.last+1)
}

// each calls f for the rows of a chunk; false says that it is damaged.
func (w *waitLog) each(chunk []byte, f func(row []byte)) bool {
	for len(chunk) > 0 {
		if len(chunk) < w.codec.head {
			return false
		}
		n := int(binary.LittleEndian.Uint32(chunk))
		if n < w.codec.head || n > len(chunk) {
			return false
		}
		f(chunk[:n])
		chunk = chunk[n:]
	}
	return true
}

// hidden is one of waitCols of a row.
func (w *waitLog) hidden(row []byte, k int) int64 {
	return int64(binary.LittleEndian.Uint64(row[w.codec.fields[w.cols+k].slot:]))
}

// next is a lower bound of the times that rows wait for.
func (w *waitLog) next() (at int64, ok bool) {
	if len(w.slices) == 0 {
		return math.MaxInt64, false
	}
	return w.slices[0].first, true
}

// add adds rows of b: those at the given places among the rows that count, with the hashes of their keys and the times
// they wait for, which are of all rows that count.
func (w *waitLog) add(b *batch.Batch, places []int32, hashes []uint64, times []int64, now int64) error {
	if len(places) == 0 {
		return nil
	}
	for _, v := range w.own {
		v.Resize(b.N)
	}
	w.in.N, w.in.Sel = b.N, w.in.Sel[:0]
	w.in.Cols = append(append(w.in.Cols[:0], b.Cols...), w.own[:]...)
	until, at, seq := w.own[waitUntil].I64, w.own[waitTime].I64, w.own[waitSeq].I64
	w.runs, w.run = w.runs[:0], resize(w.run, len(places))
	var s *waitSlice
	for k, i := range places {
		r, g, t := b.Row(int(i)), checkpoint.KeyGroup(hashes[i]), times[i]
		w.seq++
		at[r], seq[r] = t, int64(w.seq<<waitKindBits|uint64(b.Kind(r)))
		t = max(t, w.left[g]+1)
		until[r] = t
		w.in.Sel = append(w.in.Sel, int32(r))
		if s == nil || t < s.start || t >= s.end {
			s = w.sliceOf(t)
		}
		if s.touched[g] == 0 {
			w.runs = append(w.runs, waitRun{s: s, group: g})
			s.touched[g] = int32(len(w.runs))
		}
		w.run[k] = s.touched[g] - 1
	}
	w.codec.encode(&w.in, &w.enc)
	return w.store(until, now)
}

// sliceOf is the slice for time t, a new one where there is none.
func (w *waitLog) sliceOf(t int64) *waitSlice {
	i := sort.Search(len(w.slices), func(i int) bool { return w.slices[i].end > t })
	if i < len(w.slices) && w.slices[i].start <= t {
		return w.slices[i]
	}
	if n := len(w.slices); n >= waitSlicesMax && w.width < math.MaxInt64/4 && n%(waitSlicesMax/2) == 0 {
		w.width *= 2
	} else if n < waitSlicesMax/4 && w.width > waitSliceMin {
		w.width /= 2
	}
	var s *waitSlice
	if n := len(w.spare); n > 0 {
		s, w.spare = w.spare[n-1], w.spare[:n-1]
	} else {
		s = &waitSlice{}
		one := make([]waitChunk, len(s.groups)) // a chunk each, mostly there are no more
		for g := range s.groups {
			s.groups[g] = one[g : g : g+1]
		}
	}
	s.start, s.end, s.first = math.MinInt64, math.MaxInt64, math.MaxInt64
	if n := floorDiv(t, w.width); n > math.MinInt64/w.width && n < math.MaxInt64/w.width-1 {
		s.start, s.end = n*w.width, (n+1)*w.width
	}
	if i > 0 {
		s.start = max(s.start, w.slices[i-1].end)
	}
	if i < len(w.slices) {
		s.end = min(s.end, w.slices[i].start)
	}
	w.slices = slices.Insert(w.slices, i, s)
	return s
}

// rowtimes sets dst to the event times, in ms, of the rows of b that count, of schema s, in column col.
func rowtimes(dst []int64, b *batch.Batch, s *types.Schema, col int) ([]int64, error) {
	dst = resize(dst, b.Len())
	v := b.Cols[col]
	plain := !v.Const && v.Valid == nil && v.Type.Phys() == types.PhysI64
	for i := range dst {
		r := b.Row(i)
		switch {
		case plain:
			dst[i] = floorDiv(v.I64[r], 1000)
		case v.IsNull(r):
			return dst, nullTime(r, s.Columns[col].Name)
		default:
			dst[i] = millis(v, v.Idx(r))
		}
	}
	return dst, nil
}
