package op

import (
	"strconv"
	"strings"

	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/exec"
	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/expr"
	"github.com/streamsql/streamsql/sql/types"
)

// aggCore accumulates batches into state rows. Group and window aggregates share it: they differ in what a key is and
// in when results leave.
type aggCore struct {
	accs          []accumulator
	fixed, tails  int
	retract       bool // the input carries -U and -D
	groups        checkpoint.Table
	distinct      []*distinctSet
	lists         []*valueList    // all of them, to probe
	listAccs      []*accumulator  // those of accList
	one           checkpoint.Keys // a single key
	rows          [][]byte
	masks         rowMasks
	parts         []string // from local aggregates
	merging       mergePlan
	mask          []bool
	scratch, tail []byte
}

type coreSpec struct {
	aggs    []expr.Agg
	retract bool
	bits    bool // with retract false: rows come by accumulate only, so that DISTINCT needs no counts
	ttl     int64
	state   string // name of the main table
	keys    string // layout of its keys, "" = group keys
}

// toucher learns of every row about to change, before it does. i counts the batch's selected rows; beforeChanges is for
// a batch whose rows all change.
type toucher interface {
	beforeChange(i int, r checkpoint.Ref, row []byte)
	beforeChanges(refs []checkpoint.Ref, rows [][]byte)
}

func (c *aggCore) open(s exec.Subtask, spec coreSpec) error {
	c.accs, c.fixed, c.tails = layout(spec.aggs)
	c.retract = spec.retract
	format := aggFormat + spec.keys
	for _, a := range spec.aggs {
		format += ";" + a.Text + ":" + a.ArgType.String()
	}
	var err error
	c.groups, err = s.Table(checkpoint.TableOptions{Name: spec.state, Format: format, TTL: spec.ttl})
	if err != nil {
		return err
	}
	for i := range c.accs {
		a := &c.accs[i]
		if a.Distinct {
			c.joinDistinct(a, spec.bits && !spec.retract)
		}
		// DISTINCT does not change an extreme, but under retraction its counts must be those of the rows.
		if c.retract && (a.Kind == expr.AggMin || a.Kind == expr.AggMax) {
			a.distinct = -1
			if a.extremes, err = openExtremes(s, spec.state+".extremes."+strconv.Itoa(i), spec.ttl); err != nil {
				return err
			}
		}
		if a.acc == accList || c.retract && (a.Kind == expr.AggFirst || a.Kind == expr.AggLast) {
			if a.list, err = openValueList(s, spec.state+".values."+strconv.Itoa(i), a, c.retract, spec.ttl); err != nil {
				return err
			}
			c.lists = append(c.lists, a.list)
			if a.acc == accList {
				c.listAccs = append(c.listAccs, a)
			}
		}
		a.slow = a.user != nil || a.acc == accTail || a.acc == accSingle || a.acc == accSingleTail || a.extremes != nil || a.list != nil
	}
	return c.openDistinct(s, spec)
}

// joinDistinct gives a its distinct set, shared with the other aggregates over the same argument.
func (c *aggCore) joinDistinct(a *accumulator, bits bool) {
	if a.Kind == expr.AggMin || a.Kind == expr.AggMax {
		return // MIN(DISTINCT x) = MIN(x)
	}
	full := 0 // sets of the argument
	for i, d := range c.distinct {
		if d.arg != a.Arg {
			continue
		}
		if !bits || d.slots < maxBits {
			a.distinct = i
			d.join(a)
			return
		}
		full++
	}
	a.distinct = len(c.distinct)
	d := &distinctSet{arg: a.Arg, typ: a.ArgType, bits: bits, full: full}
	d.join(a)
	c.distinct = append(c.distinct, d)
}

// openDistinct opens the tables of the distinct sets.
func (c *aggCore) openDistinct(s exec.Subtask, spec coreSpec) (err error) {
	for _, d := range c.distinct {
		format := "distinct/1:"
		if d.bits {
			format = "distinct/2:"
		}
		name := spec.state + ".distinct." + strconv.Itoa(d.arg) + strings.Repeat("+", d.full)
		d.table, err = s.Table(checkpoint.TableOptions{Name: name, Format: format + d.typ.String(), TTL: spec.ttl})
		if err != nil {
			return err
		}
	}
	return nil
}

// accumulate folds the rows of b into their groups. refs come from a Probe of keys and are completed with new groups;
// entries of retractions without a group stay NoRow and the rows are ignored, as in Flink. Groups emptied by the batch
// stay in the table, with count 0, for the caller to remove.
func (c *aggCore) accumulate(b *batch.Batch, keys *checkpoint.Keys, refs []checkpoint.Ref, t toucher) error {
	if err := c.probeSets(b, keys); err != nil {
		return err
	}
	if c.retract && b.Kinds != nil {
		return c.accumulateRows(b, keys, refs, t)
	}
	if err := c.createGroups(keys, refs); err != nil {
		return err
	}
	c.rows = resize(c.rows, len(refs))
	c.groups.MutableRows(refs, c.rows)
	if t != nil {
		t.beforeChanges(refs, c.rows)
	}
	for _, row := range c.rows {
		setWord(row, rowCount, word(row, rowCount)+1)
	}
	c.masks.begin(b)
	for _, d := range c.distinct {
		if d.bits {
			if err := d.addBits(c.masks.bitsOf(d.members)); err != nil {
				return err
			}
			d.countBits(c.rows)
		}
	}
	for k := range c.accs {
		if a := &c.accs[k]; !a.slow && !c.counted(a) {
			if err := c.column(a, b, c.rows); err != nil {
				return err
			}
		}
	}
	for k := range c.accs {
		a := &c.accs[k]
		if !a.slow {
			continue
		}
		mask, err := c.inputs(a, len(refs))
		if err != nil {
			return err
		}
		for i, r := range refs {
			if mask != nil && !mask[i] {
				continue
			}
			if err := c.change(a, b, keys, i, r, b.Row(i), 1); err != nil {
				return err
			}
		}
	}
	return nil
}

// probeSets brings what is kept per value into memory for a batch with these keys.
func (c *aggCore) probeSets(b *batch.Batch, keys *checkpoint.Keys) error {
	for _, d := range c.distinct {
		if err := d.probe(b, keys); err != nil {
			return err
		}
	}
	return c.probeLists(keys)
}

// probeLists brings the value lists of keys into memory; buckets are found by the place of a key.
func (c *aggCore) probeLists(keys *checkpoint.Keys) error {
	for _, l := range c.lists {
		if err := l.m.done(); err != nil {
			return err
		}
		if err := l.m.probe(keys); err != nil {
			return err
		}
	}
	return nil
}

// doneLists ends the use of the lists of the last probe. Whoever changes lists calls it before a barrier can come: rows
// of tables move then.
func (c *aggCore) doneLists() error {
	for _, l := range c.lists {
		if err := l.m.done(); err != nil {
			return err
		}
	}
	return nil
}

// createGroups inserts the missing groups of an append-only batch.
func (c *aggCore) createGroups(keys *checkpoint.Keys, refs []checkpoint.Ref) error {
	for i, r := range refs {
		if r != checkpoint.NoRow {
			continue
		}
		r, created, err := c.groups.Insert(keys, i, newRow(c.fixed, c.tails))
		if err != nil {
			return err
		}
		if created {
			clearRow(c.groups.Mutable(r), c.fixed, c.tails)
		}
		refs[i] = r
	}
	return nil
}

// wants reports whether physical row r of b is an input of the aggregate: FILTER is TRUE and the argument not NULL.
func (a *accumulator) wants(b *batch.Batch, r int) bool {
	if a.Filter >= 0 {
		f := b.Cols[a.Filter]
		if f.IsNull(r) || !f.Bool[f.Idx(r)] {
			return false
		}
	}
	return a.Arg < 0 || a.nulls || !b.Cols[a.Arg].IsNull(r)
}

// counted reports that countBits counts for a.
func (c *aggCore) counted(a *accumulator) bool {
	return a.distinct >= 0 && c.distinct[a.distinct].counts>>a.slot&1 != 0
}

// inputs are the rows of an append-only batch, of n rows, that the aggregate takes; nil = all of them.
func (c *aggCore) inputs(a *accumulator, n int) ([]bool, error) {
	if a.distinct < 0 {
		return c.masks.of(a), nil
	}
	c.mask = resize(c.mask, n)
	d := c.distinct[a.distinct]
	if d.bits {
		for i, fresh := range d.fresh {
			c.mask[i] = fresh>>a.slot&1 != 0
		}
		return c.mask, nil
	}
	if copy(c.mask, c.masks.of(a)) == 0 {
		for i := range c.mask {
			c.mask[i] = true
		}
	}
	return c.mask, d.first(a.slot, c.retract, c.mask)
}

// column accumulates one aggregate over an append-only batch, for which c.masks has begun.
func (c *aggCore) column(a *accumulator, b *batch.Batch, rows [][]byte) error {
	if a.shared {
		return nil
	}
	mask, err := c.inputs(a, len(rows))
	if err != nil {
		return err
	}
	switch {
	case a.acc == accCount && mask == nil:
		for _, row := range rows {
			setWord(row, a.off, word(row, a.off)+1)
		}
		return nil
	case a.acc == accCount:
		for i, row := range rows { // without a branch: which rows a FILTER takes is hard to predict
			setWord(row, a.off, word(row, a.off)+boolWord(mask[i]))
		}
		return nil
	}
	v := b.Cols[a.Arg]
	switch {
	case a.acc == accSumInt:
		for i, row := range rows {
			if mask == nil || mask[i] {
				setWord(row, a.off, word(row, a.off)+v.I64[v.Idx(b.Row(i))])
				setWord(row, a.off+8, word(row, a.off+8)+1)
			}
		}
		return nil
	case a.extremeInts():
		for i, row := range rows {
			if mask == nil || mask[i] {
				a.offerInt(row, 0, v.I64[v.Idx(b.Row(i))])
			}
		}
		return nil
	}
	for i, row := range rows {
		if mask == nil || mask[i] {
			a.add(row, v, v.Idx(b.Row(i)), 1)
		}
	}
	return nil
}

// countsRows reports that the row count is the result of an aggregate.
func (c *aggCore) countsRows() bool {
	for k := range c.accs {
		if a := &c.accs[k]; a.shared && a.off == rowCount {
			return true
		}
	}
	return false
}

// extremeInts reports that a is MIN or MAX of integers.
func (a *accumulator) extremeInts() bool {
	return a.acc == accExtreme && a.ArgType.Phys() == types.PhysI64 && (a.Kind == expr.AggMin || a.Kind == expr.AggMax)
}

// offerInt is offer for extremeInts, in the row at place at of rows.
func (a *accumulator) offerInt(rows []byte, at int, x int64) {
	at += a.off
	cur := word(rows, at)
	if word(rows, at+8) == 0 || a.Kind == expr.AggMin && x < cur || a.Kind == expr.AggMax && x > cur {
		setWord(rows, at, x)
		setWord(rows, at+8, 1)
	}
}

// accumulateRows is accumulate for inputs with retractions, where a group can be emptied and begun again within one
// batch, so that order matters.
func (c *aggCore) accumulateRows(b *batch.Batch, keys *checkpoint.Keys, refs []checkpoint.Ref, t toucher) error {
	for i := range refs {
		r := b.Row(i)
		sign := int64(1)
		if b.Kind(r).IsRetract() {
			sign = -1
		}
		ref, ok, err := c.group(keys, refs, i, sign)
		if err != nil {
			return err
		}
		if !ok {
			continue
		}
		row := c.groups.Mutable(ref)
		if t != nil {
			t.beforeChange(i, ref, row)
		}
		n := word(row, rowCount) + sign
		setWord(row, rowCount, n)
		if err := c.accumulateRow(b, keys, ref, i, r, sign); err != nil {
			return err
		}
		if n == 0 {
			if err := c.reset(ref, keys, i); err != nil {
				return err
			}
		}
	}
	for _, d := range c.distinct {
		d.sweep()
	}
	return nil
}

// group finds or creates the group of row i; ok is false when a retraction has nothing to retract from.
func (c *aggCore) group(keys *checkpoint.Keys, refs []checkpoint.Ref, i int, sign int64) (checkpoint.Ref, bool, error) {
	created := false
	if refs[i] == checkpoint.NoRow {
		// Insert also finds a group created by an earlier row of this batch.
		r, isNew, err := c.groups.Insert(keys, i, newRow(c.fixed, c.tails))
		if err != nil {
			return r, false, err
		}
		refs[i], created = r, isNew
	}
	row := c.groups.Mutable(refs[i])
	if created {
		clearRow(row, c.fixed, c.tails)
	}
	if sign < 0 && word(row, rowCount) == 0 {
		if created {
			c.groups.Delete(refs[i])
			refs[i] = checkpoint.NoRow
		}
		return checkpoint.NoRow, false, nil
	}
	return refs[i], true, nil
}

func (c *aggCore) accumulateRow(b *batch.Batch, keys *checkpoint.Keys, ref checkpoint.Ref, i, r int, sign int64) error {
	for k := range c.accs {
		a := &c.accs[k]
		if a.shared || !a.wants(b, r) {
			continue
		}
		if a.distinct >= 0 {
			change, err := c.distinct[a.distinct].count(a.slot, i, sign)
			if err != nil {
				return err
			}
			if !change {
				continue
			}
		}
		if a.slow {
			if err := c.change(a, b, keys, i, ref, r, sign); err != nil {
				return err
			}
			continue
		}
		var v *batch.Vec
		idx := 0
		if a.Arg >= 0 {
			v = b.Cols[a.Arg]
			idx = v.Idx(r)
		}
		a.add(c.groups.Mutable(ref), v, idx, sign)
	}
	return nil
}
