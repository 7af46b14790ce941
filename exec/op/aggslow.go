package op

import (
	"errors"

	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/diag"
	"github.com/streamsql/streamsql/sql/expr"
	"github.com/streamsql/streamsql/sql/types"
)

// change accumulates what may change a row's size or another table, or fail.
func (c *aggCore) change(a *accumulator, b *batch.Batch, keys *checkpoint.Keys, k int, ref checkpoint.Ref, r int, sign int64) error {
	v := b.Cols[a.Arg]
	i := v.Idx(r)
	switch {
	case a.user != nil:
		return rowError(c.changeUser(a, ref, v, i, sign), a, r)
	case a.list != nil:
		return rowError(c.changeList(a, a.list.m.at(k), ref, v, r, sign), a, r)
	case a.acc == accSingle || a.acc == accSingleTail:
		return rowError(c.changeSingle(a, ref, v, r, sign), a, r)
	case a.extremes != nil:
		return c.changeExtreme(a, keys, k, ref, v, i, sign)
	}
	s := v.Str[i]
	cur, ok := tailOf(c.groups.Value(ref), c.fixed, a.tail)
	if ok && (a.Kind == expr.AggFirst || a.Kind == expr.AggMin && s >= string(cur) || a.Kind == expr.AggMax && s <= string(cur)) {
		return nil
	}
	c.setTail(a, ref, s, false)
	return nil
}

// rowError says which row an aggregate failed at.
func rowError(err error, a *accumulator, r int) error {
	var d *diag.Error
	if !errors.As(err, &d) {
		return err
	}
	if !d.Pos.Known() && a.Pos.Known() {
		placed := *d
		placed.Pos, d = a.Pos, &placed
	}
	return &expr.RowError{Row: r, Expr: a.Text, Err: d}
}

// changeList changes a list of values, and for FIRST_VALUE and LAST_VALUE the value that is the first or last now.
func (c *aggCore) changeList(a *accumulator, list bucket, ref checkpoint.Ref, v *batch.Vec, r int, sign int64) error {
	seqOff := a.off
	if a.acc != accList {
		seqOff = a.off + a.size - 8
	}
	seq, err := a.list.change(list, v, r, word(c.groups.Value(ref), seqOff), sign)
	if err != nil {
		return err
	}
	row := c.groups.Mutable(ref)
	setWord(row, seqOff, seq)
	if a.acc == accList {
		return nil
	}
	val, some, err := a.list.end(list, a.Kind == expr.AggLast)
	if err != nil {
		return err
	}
	if a.acc == accTail {
		s := ""
		if some {
			s = string(storedText(a.ArgType, val))
		}
		c.setTail(a, ref, s, !some)
		return nil
	}
	setWord(row, a.off+a.size-16, boolWord(some))
	if some {
		lo, hi := storedWords(a.ArgType.Phys(), val)
		setWord(row, a.off, lo)
		if a.acc == accExtreme2 {
			setWord(row, a.off+8, hi)
		}
	}
	return nil
}

// changeUser folds a value into the accumulator of a function of the embedding program, and keeps its result.
func (c *aggCore) changeUser(a *accumulator, ref checkpoint.Ref, v *batch.Vec, i int, sign int64) error {
	acc, _ := tailOf(c.groups.Value(ref), c.fixed, a.state)
	next, res, err := a.user.Step(acc, v, i, sign)
	if err != nil {
		return err
	}
	c.tail = withTail(c.tail, c.groups.Value(ref), c.fixed, a.state, string(next), false)
	c.groups.Set(ref, c.tail)
	if a.acc == accTail {
		if res == nil {
			c.setTail(a, ref, "", true)
		} else {
			c.setTail(a, ref, res.Str, false)
		}
		return nil
	}
	row := c.groups.Mutable(ref)
	setWord(row, a.off+8, boolWord(res != nil))
	switch {
	case res == nil:
		setWord(row, a.off, 0)
	case a.Type.Phys() == types.PhysF64:
		setFloat(row, a.off, res.F64)
	case a.Type.Phys() == types.PhysBool:
		setWord(row, a.off, boolWord(res.Bool))
	default:
		setWord(row, a.off, res.I64)
	}
	return nil
}

// changeSingle keeps the value of the only row.
func (c *aggCore) changeSingle(a *accumulator, ref checkpoint.Ref, v *batch.Vec, r int, sign int64) error {
	row := c.groups.Mutable(ref)
	n := word(row, a.off) + sign
	if n > 1 {
		return diag.New(diag.Data, diag.Pos{}, "a subquery that stands for one value has more than one row").
			WithHint("aggregate in the subquery, SELECT MAX(x) ..., or limit it: ... LIMIT 1")
	}
	setWord(row, a.off, n)
	null := n < 1 || v.IsNull(r)
	if a.acc == accSingleTail {
		s := ""
		if !null {
			s = v.Str[v.Idx(r)]
		}
		c.setTail(a, ref, s, null)
		return nil
	}
	setWord(row, a.off+24, boolWord(!null))
	if !null {
		setValue(row, a.off+8, v, v.Idx(r))
	}
	return nil
}

// changeExtreme changes the values of MIN or MAX under retraction, and what is the extreme now.
func (c *aggCore) changeExtreme(a *accumulator, keys *checkpoint.Keys, k int, ref checkpoint.Ref, v *batch.Vec, i int, sign int64) error {
	c.scratch = orderedBytes(c.scratch[:0], v, i)
	lo, hi, some, err := a.extremes.update(keys.Key(k), keys.Hashes[k], string(c.scratch), sign)
	if err != nil {
		return err
	}
	if a.Kind == expr.AggMax {
		lo = hi
	}
	if a.acc == accTail {
		c.setTail(a, ref, lo, !some)
		return nil
	}
	row := c.groups.Mutable(ref)
	words := 1
	if a.acc == accExtreme2 {
		words = 2
	}
	setWord(row, a.off+8*words, boolWord(some))
	if some {
		x, y := fromOrdered(a.ArgType.Phys(), lo)
		setWord(row, a.off, x)
		if words == 2 {
			setWord(row, a.off+8, y)
		}
	}
	return nil
}

func (c *aggCore) setTail(a *accumulator, ref checkpoint.Ref, s string, none bool) {
	c.tail = withTail(c.tail, c.groups.Value(ref), c.fixed, a.tail, s, none)
	c.groups.Set(ref, c.tail)
}

// reset makes a group whose count reached zero that of a group never seen, within its batch. The group is key i of the
// last probe of the lists.
func (c *aggCore) reset(ref checkpoint.Ref, keys *checkpoint.Keys, i int) error {
	row := c.groups.Mutable(ref)
	for k := range c.accs {
		a := &c.accs[k]
		if a.extremes != nil {
			if err := a.extremes.drop(keys.Key(i), keys.Hashes[i]); err != nil {
				return err
			}
		}
		if a.list != nil {
			if err := a.list.m.at(i).clear(); err != nil {
				return err
			}
		}
		if a.user != nil {
			c.tail = withTail(c.tail, c.groups.Value(ref), c.fixed, a.state, "", true)
			c.groups.Set(ref, c.tail)
			row = c.groups.Mutable(ref)
		}
		if a.tail >= 0 {
			c.setTail(a, ref, "", true)
			row = c.groups.Mutable(ref)
		}
	}
	clearRow(row, c.fixed, c.tails)
	return nil
}

// alone reports that a group has nothing beside its row, so that it is removed by deleting that.
func (c *aggCore) alone() bool { return len(c.lists) == 0 && !c.retract }

// remove deletes a group from the state.
func (c *aggCore) remove(ref checkpoint.Ref, key []byte, hash uint64) error {
	keys := c.single(key, hash)
	if err := c.probeLists(keys); err != nil {
		return err
	}
	if err := c.removeAt(keys, 0); err != nil {
		return err
	}
	c.groups.Delete(ref)
	return c.doneLists()
}

// removeAt deletes what a group has beside its row. It is key i of the last probe of the lists.
func (c *aggCore) removeAt(keys *checkpoint.Keys, i int) error {
	for _, l := range c.lists {
		if err := l.m.at(i).clear(); err != nil {
			return err
		}
	}
	for k := range c.accs {
		if e := c.accs[k].extremes; e != nil {
			if err := e.drop(keys.Key(i), keys.Hashes[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

// listValues appends the values of accList aggregates to dst; the group is key i of the last probe of the lists.
func (c *aggCore) listValues(dst []listValue, i int) ([]listValue, error) {
	for _, a := range c.listAccs {
		s, ok, err := a.list.result(a.list.m.at(i), a)
		if err != nil {
			return dst, err
		}
		dst = append(dst, listValue{s, ok})
	}
	return dst, nil
}

func (c *aggCore) single(key []byte, hash uint64) *checkpoint.Keys {
	c.one.Reset()
	c.one.Buf = append(c.one.Buf, key...)
	c.one.Ends = append(c.one.Ends, int32(len(key)))
	c.one.Hashes = append(c.one.Hashes, hash)
	return &c.one
}

// results fills res with the aggregates of a row, but for accList, whose values are not in the row.
func (c *aggCore) results(row []byte, res []types.Datum) {
	for k := range c.accs {
		if a := &c.accs[k]; a.acc != accList {
			res[k] = a.result(row, c.fixed)
		}
	}
}

// resultsFor fills res with the aggregates of the group with the given key, hash and row.
func (c *aggCore) resultsFor(key []byte, hash uint64, row []byte, res []types.Datum) error {
	if len(c.lists) > 0 {
		if err := c.probeLists(c.single(key, hash)); err != nil {
			return err
		}
	}
	return c.resultsAt(row, 0, res)
}

// resultsAt fills res with the aggregates of a row whose group is key i of the last probe of the lists.
func (c *aggCore) resultsAt(row []byte, i int, res []types.Datum) error {
	c.results(row, res)
	for k := range c.accs {
		a := &c.accs[k]
		if a.acc != accList {
			continue
		}
		s, ok, err := a.list.result(a.list.m.at(i), a)
		if err != nil {
			return err
		}
		if res[k] = types.NullDatum; ok {
			if res[k] = types.StrDatum(s); a.Type.IsNested() {
				if res[k], err = types.DecodeNested(s, a.Type); err != nil {
					return err
				}
			}
		}
	}
	return nil
}
