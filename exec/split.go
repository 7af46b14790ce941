package exec

import (
	"encoding/binary"
	"fmt"
	"slices"
	"sort"

	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/sql/diag"
)

// split is what a source subtask knows of one of its splits. All but the meter is part of every checkpoint.
type split struct {
	name checkpoint.Split
	next []byte // position; nil = the table's configured start
	wm   Watermark
	idle bool
	done bool // no more rows, ever
	late bool // discovered after the job's first start: read from its beginning
	by   int  // the subtask that must read it: it did when the checkpoint was taken; -1 = any
	// lastRow is when the split last had rows, in ms of processing time, moved forward by the time spent waiting for
	// downstream: backpressure is not idleness.
	lastRow int64
	meter   *splitMeter
	read    int64 // rows, since this process began to read it
	ahead   bool  // it had a row that lay too far in the future; said once
}

// splitMeter are the figures of a split that Status reads.
type splitMeter struct {
	lag, records, bytes, watermark Counter
	idle                           Counter // 1 = idle
	high, again                    Counter // how far it was ever read, see split.read; rows read again
}

const sourceStateVersion = 1

// encodeSplits is the source's small state: what a Position has no room for.
func encodeSplits(splits []*split) []byte {
	out := []byte{sourceStateVersion}
	out = binary.AppendUvarint(out, uint64(len(splits)))
	for _, s := range splits {
		out = binary.AppendUvarint(out, uint64(len(s.name)))
		out = append(out, s.name...)
		out = binary.AppendVarint(out, int64(s.wm))
		flags := byte(0)
		if s.idle {
			flags |= 1
		}
		if s.done {
			flags |= 2
		}
		out = append(out, flags)
	}
	return out
}

var errSourceState = diag.New(diag.Internal, diag.Pos{}, "source state of the checkpoint is damaged")

// decodeSplits reads encodeSplits.
func decodeSplits(b []byte) (out []*split, err error) {
	if len(b) == 0 {
		return nil, errSourceState
	}
	if b[0] != sourceStateVersion {
		return nil, diag.New(diag.Config, diag.Pos{}, "source state has version %d, this program reads %d", b[0], sourceStateVersion).
			WithHint("restore with the streamsql version that wrote the checkpoint")
	}
	b = b[1:]
	uvarint := func() uint64 {
		v, n := binary.Uvarint(b)
		if n <= 0 {
			err, b = errSourceState, nil
			return 0
		}
		b = b[n:]
		return v
	}
	for n := uvarint(); n > 0 && err == nil; n-- {
		l := uvarint()
		if uint64(len(b)) < l {
			return nil, errSourceState
		}
		s := &split{name: checkpoint.Split(b[:l])}
		b = b[l:]
		wm, k := binary.Varint(b)
		if k <= 0 || len(b) <= k {
			return nil, errSourceState
		}
		s.wm, s.idle, s.done = Watermark(wm), b[k]&1 != 0, b[k]&2 != 0
		b = b[k+1:]
		out = append(out, s)
	}
	if err == nil && len(b) > 0 {
		err = errSourceState
	}
	return out, err
}

// restoreSplits merges the positions and states of all old subtasks of a source, for so many new ones.
func restoreSplits(snapshots []checkpoint.Snapshot, parallelism int) (map[checkpoint.Split]*split, error) {
	known := map[checkpoint.Split]*split{}
	for i, sn := range snapshots {
		by := i
		if len(snapshots) != parallelism {
			by = -1
		}
		states, err := decodeSplits(sn.State)
		if err != nil {
			return nil, fmt.Errorf("source %s, subtask %d: %w", sn.Subtask.Operator, sn.Subtask.Index, err)
		}
		for _, s := range states {
			s.by = by
			known[s.name] = s
		}
		for _, p := range sn.Positions {
			s := known[p.Split]
			if s == nil {
				s = &split{name: p.Split, wm: NoWatermark, by: by}
				known[p.Split] = s
			}
			s.next = p.Next
		}
	}
	return known, nil
}

// assignSplits gives every split, known ones and listed ones, to a subtask. At an unchanged parallelism a known one stays where it was: the
// operators chained to its subtask go on at their event time, for which the rows of another subtask's split could be late. All others go in
// name order to the subtask with the fewest that are not done, so that at a fresh start it is round robin. Known splits keep their position
// even when the source no longer lists them, so that the reader can say what is gone. known is nil on a fresh start.
func assignSplits(listed []checkpoint.Split, known map[checkpoint.Split]*split, parallelism int) [][]*split {
	all := make(map[checkpoint.Split]*split, len(listed)+len(known))
	for n, s := range known {
		all[n] = s
	}
	for _, n := range listed {
		if all[n] == nil {
			all[n] = &split{name: n, wm: NoWatermark, late: known != nil, by: -1}
		}
	}
	names := make([]checkpoint.Split, 0, len(all))
	open := make([]int, parallelism)
	for n, s := range all {
		names = append(names, n)
		if s.by >= 0 && !s.done {
			open[s.by]++
		}
	}
	sort.Slice(names, func(i, j int) bool { return lessSplit(names[i], names[j]) })
	out := make([][]*split, parallelism)
	for _, n := range names {
		s := all[n]
		to := s.by
		if to < 0 {
			to = slices.Index(open, slices.Min(open))
			if !s.done {
				open[to]++
			}
		}
		out[to] = append(out[to], s)
	}
	return out
}

// lessSplit orders "p-2" before "p-10", so that round robin spreads the partitions of each topic evenly.
func lessSplit(a, b checkpoint.Split) bool {
	if len(a) != len(b) {
		return len(a) < len(b)
	}
	return a < b
}
