package op

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"

	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/exec"
	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/types"
)

// aggChange is a row to emit: the aggregates of a row image.
type aggChange struct {
	image []byte
	lists []listValue
	index int // the group's key
	kind  types.RowKind
}

// emit emits the changes of the touched groups, whose keys are in keys and, unless b is nil, in the rows of b, and
// removes the groups that are empty.
func (g *groupAggregate) emit(ts []touch, keys *checkpoint.Keys, b *batch.Batch, out exec.Emitter) error {
	g.refs = resize(g.refs, len(ts))
	for i := range ts {
		g.refs[i] = ts[i].ref
	}
	g.rows = resize(g.rows, len(ts))
	g.core.groups.MutableRows(g.refs, g.rows)
	for _, row := range g.rows {
		binary.LittleEndian.PutUint32(row[rowTouch:], 0)
	}
	g.changes, g.newLists = g.changes[:0], g.newLists[:0]
	for i := range ts {
		if err := g.change(&ts[i], g.rows[i]); err != nil {
			return err
		}
	}
	for rest := g.changes; len(rest) > 0; {
		n := min(len(rest), batch.Size)
		if rest[n-1].kind == types.UpdateBefore {
			n-- // an update's two rows stay in one batch
		}
		if err := g.write(rest[:n], keys, b); err != nil {
			return err
		}
		if err := flush(g.out, out); err != nil {
			return err
		}
		rest = rest[n:]
	}
	for i := range ts {
		if word(g.rows[i], rowCount) <= 0 {
			ts[i].existed = false
			if err := g.core.removeAt(keys, ts[i].index); err != nil {
				return err
			}
		} else {
			ts[i].existed = true
		}
	}
	for i := range ts {
		if !ts[i].existed {
			g.core.groups.Delete(ts[i].ref)
		}
	}
	return g.core.doneLists()
}

// change adds what became of a group to g.changes.
func (g *groupAggregate) change(t *touch, row []byte) error {
	exists := word(row, rowCount) > 0
	if !exists && !t.existed {
		return nil
	}
	n := len(g.core.listAccs)
	was := aggChange{image: g.old[t.old : t.old+t.oldLen], index: t.index, kind: types.Delete}
	now := aggChange{image: row, index: t.index, kind: types.Insert}
	if t.existed {
		was.lists = g.oldLists[t.lists : t.lists+n]
	}
	if exists && n > 0 {
		at := len(g.newLists)
		var err error
		if g.newLists, err = g.core.listValues(g.newLists, t.index); err != nil {
			return err
		}
		now.lists = g.newLists[at:]
	}
	switch {
	case !t.existed:
		g.changes = append(g.changes, now)
	case !exists:
		g.changes = append(g.changes, was)
	// Flink emits unchanged results only when state can expire, to keep the consumers' state alive.
	case g.spec.TTL > 0 || !g.core.same(&was, &now):
		if g.spec.EmitUpdateBefore {
			was.kind = types.UpdateBefore
			g.changes = append(g.changes, was)
		}
		now.kind = types.UpdateAfter
		g.changes = append(g.changes, now)
	}
	return nil
}

// write appends changes to the output, column by column.
func (g *groupAggregate) write(changes []aggChange, keys *checkpoint.Keys, b *batch.Batch) error {
	if b != nil {
		for i, c := range g.spec.Keys {
			col, v := g.out.Cols[i], b.Cols[c]
			for k := range changes {
				col.AppendFrom(v, b.Row(changes[k].index))
			}
		}
	} else {
		g.keyList = g.keyList[:0]
		for k := range changes {
			g.keyList = append(g.keyList, keys.Key(changes[k].index))
		}
		if err := g.columns.decode(g.keyList, g.out.Cols[:len(g.spec.Keys)]); err != nil {
			return fmt.Errorf("aggregation state: %w", err)
		}
	}
	g.images = g.images[:0]
	for k := range changes {
		g.images = append(g.images, changes[k].image)
	}
	list := 0
	for i := range g.core.accs {
		a, col := &g.core.accs[i], g.out.Cols[len(g.spec.Keys)+i]
		if a.acc != accList {
			a.appendResults(col, g.images, g.core.fixed)
			continue
		}
		for k := range changes {
			if v := &changes[k].lists[list]; v.ok {
				col.AppendStr(v.s)
			} else {
				col.AppendNull()
			}
		}
		list++
	}
	for k := range changes {
		g.out.RowKindDone(changes[k].kind)
	}
	return nil
}

// appendResults appends the aggregate's value in every row image.
func (a *accumulator) appendResults(col *batch.ColBuilder, images [][]byte, fixed int) {
	switch {
	case a.acc == accCount:
		first := col.AppendN(len(images))
		for i, image := range images {
			col.I64[first+i] = word(image, a.off)
		}
	case a.tail >= 0:
		for _, image := range images {
			if s, ok := tailOf(image, fixed, a.tail); ok {
				col.AppendStr(string(s))
			} else {
				col.AppendNull()
			}
		}
	case a.Type.Phys() == types.PhysI64:
		first := col.AppendN(len(images))
		for i, image := range images {
			x, _, ok := a.value(image)
			if col.I64[first+i] = x; !ok {
				col.I64[first+i] = 0
				col.Nullify(first + i)
			}
		}
	default:
		p := a.Type.Phys()
		for _, image := range images {
			lo, hi, ok := a.value(image)
			if !ok {
				col.AppendNull()
				continue
			}
			switch p {
			case types.PhysF64:
				col.AppendF64(math.Float64frombits(uint64(lo)))
			case types.PhysBool:
				col.AppendBool(lo != 0)
			case types.PhysI128:
				col.AppendI128(types.Int128{Lo: uint64(lo), Hi: hi})
			}
		}
	}
}

// same reports that two images of a group give the same results.
func (c *aggCore) same(x, y *aggChange) bool {
	for i := range x.lists {
		if x.lists[i] != y.lists[i] {
			return false
		}
	}
	for i := range c.accs {
		if a := &c.accs[i]; a.acc != accList && !a.same(x.image, y.image, c.fixed) {
			return false
		}
	}
	return true
}

func (a *accumulator) same(x, y []byte, fixed int) bool {
	switch {
	case a.acc == accCount:
		return word(x, a.off) == word(y, a.off)
	case a.tail >= 0:
		s, some := tailOf(x, fixed, a.tail)
		t, ok := tailOf(y, fixed, a.tail)
		return some == ok && bytes.Equal(s, t)
	case bytes.Equal(x[a.off:a.off+a.size], y[a.off:a.off+a.size]):
		return true
	}
	lo, hi, ok := a.value(x)
	lo2, hi2, ok2 := a.value(y)
	if !ok || !ok2 {
		return ok == ok2
	}
	if a.Type.Phys() == types.PhysF64 {
		f, h := math.Float64frombits(uint64(lo)), math.Float64frombits(uint64(lo2))
		return f == h || f != f && h != h
	}
	return lo == lo2 && hi == hi2
}
