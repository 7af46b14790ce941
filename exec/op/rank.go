package op

import (
	"encoding/binary"

	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/exec"
	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/diag"
	"github.com/streamsql/streamsql/sql/types"
)

// RankStrategy is how a Top-N keeps its rows (Flink: RankProcessStrategy).
type RankStrategy uint8

// The strategies.
const (
	// RankAppend: the input is append-only; only the best rows are kept.
	RankAppend RankStrategy = iota
	// RankUpdate: the input is updates by UniqueKey without -U, each at least as good a row as the one it replaces; only
	// the best rows are kept.
	RankUpdate
	// RankRetract: any input, with -U; all rows are kept.
	RankRetract
)

// RankSpec describes a Top-N: of every partition the rows whose place (1, 2 …) in the order is From ≤ place ≤ To. Rows
// that are equal in the order keep that of their arrival.
type RankSpec struct {
	Input     *types.Schema
	Partition []int
	Order     []SortKey
	Strategy  RankStrategy
	UniqueKey []int // RankUpdate: columns that identify a row
	From, To  int64 // To is not used with ToColumn
	// ToColumn is an integer column that gives To; the first row of a partition decides. -1 = none.
	ToColumn int
	// Number adds the place as a BIGINT column behind the input's.
	Number           bool
	EmitUpdateBefore bool
	TTL              int64 // ms, 0 = none
	// Mini merges changes of an append-only input. Size 0 asks for each of them, as Flink sends them without mini-batches; a
	// temporal join reads them as versions.
	Mini   MiniBatch
	Output *types.Schema // the input's columns, and with Number the place
}

// NewRank is Flink's streaming Top-N. Rows must be exchanged by Partition. Without the place in the output, and from the
// first place on, a row that comes in is +I and one that goes out -D; otherwise every row that moves is an update of the
// place: -U, +U.
func NewRank(spec RankSpec) func() exec.Operator {
	return func() exec.Operator {
		core := rankCore{spec: spec}
		switch {
		case spec.Strategy == RankRetract:
			return &retractRank{rankCore: core}
		case spec.Strategy == RankAppend && len(spec.Order) == 0:
			return &firstRank{rankCore: core}
		case spec.Strategy == RankAppend && spec.Mini.Size > 0 && spec.ToColumn < 0 && spec.To <= listMax:
			return &listRank{rankCore: core}
		case spec.ToColumn < 0 && spec.From == 1 && spec.To == 1:
			return &topOne{rankCore: core}
		case spec.Strategy == RankUpdate:
			return &updateRank{rankCore: core}
		}
		return &appendRank{rankCore: core}
	}
}

// rankCore is what all strategies share: keys, the limit, and writing of rows.
type rankCore struct {
	spec RankSpec
	// shifts: rows that move are updates of places.
	shifts  bool
	enc     *exec.KeyEncoder
	order   *sortKeyEncoder
	keys    checkpoint.Keys
	limits  checkpoint.Table // partition → To; nil when it is constant
	refs    []checkpoint.Ref
	invalid *exec.Counter
	seq     uint64 // of the rows that arrived, over all partitions
	to      int64  // of the row at hand
	row     []byte // the row at hand, encoded
	key     []byte // and its sub-key: rankRows, sort key, seq
	out     *batch.Builder
	next    exec.Emitter
}

const seqSize = 8

func (c *rankCore) open(s exec.Subtask) error {
	spec := &c.spec
	c.shifts = spec.Number || spec.From > 1
	c.enc = exec.NewKeyEncoder(spec.Partition)
	c.order = newSortKeyEncoder(spec.Order, spec.Input)
	c.out = batch.NewBuilder(spec.Output)
	c.invalid = s.Counter("rank-limit-changed")
	for _, st := range s.Restored() {
		if len(st) != seqSize {
			return diag.New(diag.Internal, diag.Pos{}, "the state of a Top-N in the checkpoint is damaged")
		}
		c.seq = max(c.seq, binary.BigEndian.Uint64(st))
	}
	if spec.ToColumn < 0 {
		c.to = spec.To
		return nil
	}
	var err error
	c.limits, err = s.Table(checkpoint.TableOptions{Name: "limits", Format: "limit/1", TTL: spec.TTL})
	return err
}

// OnWatermark implements exec.Operator.
func (c *rankCore) OnWatermark(exec.Watermark, exec.Emitter) error { return nil }

// OnBarrier implements exec.Operator: the number of the last row, so that later ones come behind it.
func (c *rankCore) OnBarrier(checkpoint.Barrier, exec.Emitter) ([]byte, error) {
	return binary.BigEndian.AppendUint64(nil, c.seq), nil
}

// Close implements exec.Operator.
func (c *rankCore) Close() error { return nil }

// begin encodes the partitions of a batch.
func (c *rankCore) begin(b *batch.Batch, out exec.Emitter) error {
	c.next = out
	c.enc.Encode(b, &c.keys)
	if c.limits == nil {
		return nil
	}
	c.refs = resize(c.refs, c.keys.Len())
	return c.limits.Probe(&c.keys, c.refs)
}

// take reads row i of the batch, physical row r: its limit, sort key and bytes. It gets the next number.
func (c *rankCore) take(b *batch.Batch, i, r int) error {
	c.seq++
	c.key = c.order.appendTo(append(c.key[:0], rankRows), b, r)
	c.key = binary.BigEndian.AppendUint64(c.key, c.seq)
	c.row = appendRow(c.row[:0], b, r)
	return c.limit(b, i, r)
}

// limit sets the limit for row i of the batch.
func (c *rankCore) limit(b *batch.Batch, i, r int) error {
	if c.limits == nil {
		return nil
	}
	v := b.Cols[c.spec.ToColumn]
	to := int64(0)
	if !v.IsNull(r) {
		to = v.I64[v.Idx(r)]
	}
	if c.refs[i] == checkpoint.NoRow {
		ref, created, err := c.limits.Insert(&c.keys, i, 8)
		if err != nil {
			return err
		}
		if c.refs[i] = ref; created {
			setWord(c.limits.Mutable(ref), 0, to)
		}
	}
	if c.to = word(c.limits.Value(c.refs[i]), 0); c.to != to {
		c.invalid.Add(1)
	}
	return nil
}

// sortOf is a sub-key of rankRows without its number: what equal rows share.
func sortOf(key []byte) []byte { return key[:len(key)-seqSize] }

// shows reports whether rows at that place are in the output.
func (c *rankCore) shows(place int64) bool { return place >= c.spec.From && place <= c.to }

// emit writes a row whose place is in the output.
func (c *rankCore) emit(row []byte, place int64, k types.RowKind) error {
	if !c.shows(place) {
		return nil
	}
	if c.out.Full() {
		if err := flush(c.out, c.next); err != nil {
			return err
		}
	}
	return c.append(row, place, k)
}

// update writes that the row at a place changes.
func (c *rankCore) update(old, row []byte, place int64) error {
	if !c.shows(place) {
		return nil
	}
	if c.out.Len() >= batch.Size-1 { // the two stay in one batch
		if err := flush(c.out, c.next); err != nil {
			return err
		}
	}
	if c.spec.EmitUpdateBefore {
		if err := c.append(old, place, types.UpdateBefore); err != nil {
			return err
		}
	}
	return c.append(row, place, types.UpdateAfter)
}

func (c *rankCore) append(row []byte, place int64, k types.RowKind) error {
	n := c.spec.Input.Len()
	if _, err := exec.DecodeKey(row, c.out.Cols[:n]); err != nil {
		c.out.Abandon()
		return err
	}
	if c.spec.Number {
		c.out.Cols[n].AppendI64(place)
	}
	c.out.RowKindDone(k)
	return nil
}

// shift moves the rows of b from sub-key from on one place down: cur takes place, the row that had it the next one. It
// ends behind the limit, or at stop, the sub-key of the row that leaves a hole (nil = none). place is then that of cur.
func (c *rankCore) shift(b bucket, from, stop, cur []byte, place int64) (last []byte, at int64, err error) {
	var failed error
	err = b.ascend(from, func(sub, row []byte) bool {
		if sub[0] != rankRows || place > c.to || stop != nil && string(sub) >= string(stop) {
			return false
		}
		failed = c.update(row, cur, place)
		cur, place = row, place+1
		return failed == nil
	})
	if err == nil {
		err = failed
	}
	return cur, place, err
}

// enter emits the changes of the row at hand coming in.
func (c *rankCore) enter(b bucket) error {
	if !c.shifts {
		return c.emit(c.row, 1, types.Insert)
	}
	place, err := c.placeOf(b, c.key)
	if err != nil {
		return err
	}
	row, place, err := c.shift(b, c.key, nil, c.row, place)
	if err != nil {
		return err
	}
	return c.emit(row, place, types.Insert)
}

// placeOf is the place a row with that sub-key has or gets: how many rows are before it, plus one. It does not count
// beyond the limit.
func (c *rankCore) placeOf(b bucket, sub []byte) (place int64, err error) {
	place = 1
	err = b.ascend(nil, func(s, _ []byte) bool {
		if s[0] != rankRows || place > c.to || string(s) >= string(sub) {
			return false
		}
		place++
		return true
	})
	return place, err
}

// rankIDs reads the unique key out of stored rows.
type rankIDs struct {
	enc *exec.KeyEncoder
	row *batch.Builder
}

func newRankIDs(s *types.Schema, key []int) *rankIDs {
	return &rankIDs{exec.NewKeyEncoder(key), batch.NewBuilder(s)}
}

// append appends the unique key of a stored row to dst.
func (d *rankIDs) append(dst, row []byte) ([]byte, error) {
	d.row.Reset()
	if _, err := exec.DecodeKey(row, d.row.Cols); err != nil {
		d.row.Abandon()
		return dst, err
	}
	d.row.RowDone()
	return d.enc.AppendKey(dst, d.row.Finish(), 0), nil
}

// The sub-keys of a partition's bucket begin with what the entry is.
const (
	rankRows byte = iota // then sort key, number of arrival → row
	rankKeys             // RankUpdate: then the row's unique key → sub-key of its row
	rankSame             // RankRetract without an order: then hash of the row, number of arrival → nothing
	rankEdge             // RankRetract: sub-key of the row at place To, while there are that many
)
