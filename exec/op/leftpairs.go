package op

import (
	"github.com/streamsql/streamsql/exec"
	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/expr"
	"github.com/streamsql/streamsql/sql/types"
)

// leftPairs builds the output of a join that enriches the rows of its left input, in their order and with their kinds:
// each left row leaves once per match, or, when the join is an outer one and nothing matches, once with NULLs. The rows
// of one left row are a group: begin, then candidate rows, then end.
type leftPairs struct {
	left   int // columns of the left input
	outer  bool
	filter *expr.Filter   // nil = every candidate is a match
	rows   *batch.Builder // candidates; without a filter, the output
	out    *batch.Builder // the output of an outer join with a filter
	groups []pairGroup
	tested []int32 // candidates to test
	start  int     // first candidate of the group being built
}

// pairGroup is where a left row's candidates end. Of a padded group there is one row and nothing to test.
type pairGroup struct {
	end    int32
	padded bool
}

func newLeftPairs(left int, outer bool, output *types.Schema, cond expr.Expr, s expr.Session) (*leftPairs, error) {
	p := &leftPairs{left: left, outer: outer, rows: batch.NewBuilder(output), tested: make([]int32, 0, batch.Size)}
	if cond == nil {
		return p, nil
	}
	p.out = batch.NewBuilder(output)
	var err error
	p.filter, err = expr.CompileFilter(cond, s)
	return p, err
}

// leftCols and rightCols take the values of a candidate; done finishes it.
func (p *leftPairs) leftCols() []*batch.ColBuilder  { return p.rows.Cols[:p.left] }
func (p *leftPairs) rightCols() []*batch.ColBuilder { return p.rows.Cols[p.left:] }

func (p *leftPairs) done(k types.RowKind) { p.rows.RowKindDone(k) }

// begin starts the group of a left row.
func (p *leftPairs) begin() { p.start = p.rows.Len() }

// matched reports whether the group has candidates.
func (p *leftPairs) matched() bool { return p.rows.Len() > p.start }

// end ends a group. One without candidates needs a row with NULLs if the join is an outer one: the caller has put the
// left columns then.
func (p *leftPairs) end(padded bool, k types.RowKind, out exec.Emitter) error {
	if padded {
		for _, c := range p.rightCols() {
			c.AppendNull()
		}
		p.rows.RowKindDone(k)
	}
	if p.filter != nil {
		for r := p.start; r < p.rows.Len() && !padded; r++ {
			p.tested = append(p.tested, int32(r))
		}
		p.groups = append(p.groups, pairGroup{end: int32(p.rows.Len()), padded: padded})
	}
	// An update's two rows stay in one batch where they can.
	if p.rows.Len() >= batch.Size-1 && k != types.UpdateBefore {
		return p.flush(out)
	}
	return nil
}

// group is for a caller that puts the candidates of several groups at once before flush, instead of begin and end: n
// more of them are a group's. Of a padded one there is the row with NULLs.
func (p *leftPairs) group(n int, padded bool) {
	if p.filter == nil {
		return
	}
	first := int32(0)
	if k := len(p.groups); k > 0 {
		first = p.groups[k-1].end
	}
	end := first + int32(n)
	for r := first; r < end && !padded; r++ {
		p.tested = append(p.tested, r)
	}
	p.groups = append(p.groups, pairGroup{end: end, padded: padded})
}

// flush emits the groups ended so far.
func (p *leftPairs) flush(out exec.Emitter) error {
	if p.filter == nil {
		return flush(p.rows, out)
	}
	if p.rows.Len() == 0 {
		p.groups = p.groups[:0]
		return nil
	}
	b := *p.rows.Finish()
	b.Sel = p.tested
	kept, err := p.filter.Apply(&b)
	if err != nil {
		return err
	}
	if p.outer {
		err = p.emitOuter(&b, kept.Sel, out)
	} else if kept.Len() > 0 {
		err = out.Emit(kept)
	}
	p.rows.Reset()
	p.groups, p.tested = p.groups[:0], p.tested[:0]
	return err
}

// emitOuter emits the kept rows and, for groups of which none is kept, the left row with NULLs.
func (p *leftPairs) emitOuter(b *batch.Batch, kept []int32, out exec.Emitter) error {
	start := int32(0)
	for _, g := range p.groups {
		first := start
		start = g.end
		some := g.padded
		if g.padded {
			copyRow(p.out, b, int(first), b.Kind(int(first)))
		}
		for ; len(kept) > 0 && kept[0] < g.end; kept = kept[1:] {
			copyRow(p.out, b, int(kept[0]), b.Kind(int(kept[0])))
			some = true
			if p.out.Full() {
				if err := flush(p.out, out); err != nil {
					return err
				}
			}
		}
		if !some && first < g.end {
			for i, c := range p.out.Cols {
				if i < p.left {
					c.AppendFrom(b.Cols[i], int(first))
				} else {
					c.AppendNull()
				}
			}
			p.out.RowKindDone(b.Kind(int(first)))
		}
		if p.out.Full() {
			if err := flush(p.out, out); err != nil {
				return err
			}
		}
	}
	return flush(p.out, out)
}
