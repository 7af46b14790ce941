package op

import (
	"bytes"
	"encoding/binary"
	"slices"

	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/exec"
	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/types"
)

// timeQueue are rows that wait for a time and leave in the order of time, sort keys and arrival: a waitLog that sorts the
// rows of one time as they leave. Those that are more than a batch are sorted in state, which is empty again when they have
// left.
type timeQueue struct {
	log   *waitLog
	order *sortKeyEncoder // nil = time and arrival only
	visit waitVisitor     // of log

	f      waitVisitor // who gets the rows that leave
	keys   []byte      // sort keys of a batch
	ends   []int
	perm   []int32
	sorted *batch.Builder

	many  *multimap // nothing → sort key, number → row
	all   checkpoint.Keys
	seq   uint64
	sub   []byte
	row   []byte
	times []int64
}

// openTimeQueue opens the state named name for rows of in, ordered by order within a time.
func openTimeQueue(s exec.Subtask, name string, in *types.Schema, order []SortKey) (*timeQueue, error) {
	q := &timeQueue{}
	var err error
	if q.log, err = openWaitLog(s, name, in, true); err != nil {
		return nil, err
	}
	q.visit = q.sort
	if len(order) == 0 {
		return q, nil
	}
	q.order, q.sorted, q.log.peers = newSortKeyEncoder(order, in), batch.NewBuilder(in), true
	appendKey(&q.all, nil, checkpoint.HashKey(nil))
	q.many, err = openMultimap(s, name+".many", "timequeue/1:"+rowFormat(in), 0)
	return q, err
}

// leave takes the rows out that wait for times up to upTo and calls f with them.
func (q *timeQueue) leave(upTo int64, f waitVisitor) error {
	if q.order == nil {
		return q.log.leave(upTo, f)
	}
	q.f = f
	return q.log.leave(upTo, q.visit)
}

// sort is what log calls with rows that leave.
func (q *timeQueue) sort(b *batch.Batch, times []int64) error {
	switch q.log.phase {
	case waitEnter:
		return q.store(b)
	case waitResults:
		return q.drain(times[0]) // all of them, at the first call
	}
	moved := false
	q.perm = resize(q.perm, b.N)
	for i := range q.perm {
		q.perm[i] = int32(i)
	}
	for i := 0; i < b.N; {
		j := i + 1
		for j < b.N && times[j] == times[i] {
			j++
		}
		if j > i+1 && q.sortPeers(b, q.perm[i:j]) {
			moved = true
		}
		i = j
	}
	if !moved {
		return q.f(b, times)
	}
	q.sorted.Reset()
	for k, v := range b.Cols {
		q.sorted.Cols[k].AppendRows(v, q.perm)
	}
	q.sorted.RowsDone(b.N)
	return q.f(q.sorted.Finish(), times)
}

// sortPeers sorts rows of one time and tells whether that moved any.
func (q *timeQueue) sortPeers(b *batch.Batch, rows []int32) bool {
	first := rows[0]
	q.keys, q.ends = q.keys[:0], append(q.ends[:0], 0)
	for _, r := range rows {
		q.keys = q.order.appendTo(q.keys, b, int(r))
		q.ends = append(q.ends, len(q.keys))
	}
	slices.SortStableFunc(rows, func(x, y int32) int {
		x, y = x-first, y-first
		return bytes.Compare(q.keys[q.ends[x]:q.ends[x+1]], q.keys[q.ends[y]:q.ends[y+1]])
	})
	for i, r := range rows {
		if r != first+int32(i) {
			return true
		}
	}
	return false
}

// store puts rows of a time that has more than a batch in the order in which they leave.
func (q *timeQueue) store(b *batch.Batch) error {
	if err := q.many.probe(&q.all); err != nil {
		return err
	}
	for r := range b.N {
		q.seq++
		q.sub = binary.BigEndian.AppendUint64(q.order.appendTo(q.sub[:0], b, r), q.seq)
		q.row = appendRow(q.row[:0], b, r)
		if err := q.many.at(0).put(q.sub, q.row); err != nil {
			return err
		}
	}
	return q.many.done()
}

// drain gives f the rows stored, which are of time at.
func (q *timeQueue) drain(at int64) error {
	for {
		if err := q.many.probe(&q.all); err != nil {
			return err
		}
		q.sorted.Reset()
		var failed error
		err := q.many.at(0).ascend(nil, func(sub, row []byte) bool {
			if q.sorted.Full() {
				return false
			}
			q.sub = append(append(q.sub[:0], sub...), 0)
			failed = emitRow(q.sorted, row, types.Insert)
			return failed == nil
		})
		if err == nil {
			err = failed
		}
		if err != nil || q.sorted.Len() == 0 {
			return err
		}
		if err := q.many.at(0).removeBelow(q.sub); err != nil {
			return err
		}
		if err := q.many.done(); err != nil {
			return err
		}
		b := q.sorted.Finish()
		q.times = resize(q.times, b.N)
		for i := range q.times {
			q.times[i] = at
		}
		if err := q.f(b, q.times); err != nil {
			return err
		}
	}
}
