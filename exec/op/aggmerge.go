package op

import (
	"math"

	"github.com/streamsql/streamsql/sql/expr"
	"github.com/streamsql/streamsql/sql/types"
)

// rowFlags is the place of a state row's flags; accumulation leaves them alone.
const rowFlags = 4

// mergeable reports that two rows of the core can be added up: everything they hold is in their fixed words. Windows
// that share slices need it; other aggregates keep the state of every window apart.
func (c *aggCore) mergeable() bool {
	for k := range c.accs {
		if !c.accs[k].mergeable() {
			return false
		}
	}
	return c.tails == 0
}

func (a *accumulator) mergeable() bool {
	if a.distinct >= 0 || a.extremes != nil {
		return false
	}
	switch a.acc {
	case accCount, accSumInt, accSumFloat, accSumDec:
		return true
	case accExtreme, accExtreme2:
		return a.Kind == expr.AggMin || a.Kind == expr.AggMax // the others depend on the order of the rows
	}
	return false
}

// mergePlan is how rows of a core are added up: most of what they hold are words whose sum is that of the rows.
type mergePlan struct {
	adds   []int // offsets of these words, the number of rows among them; nil = not planned yet
	ints   []intExtreme
	others []int // accumulators
}

// intExtreme is MIN or MAX of integers.
type intExtreme struct {
	off   int
	least bool
}

func (p *mergePlan) plan(accs []accumulator) {
	p.adds = append(p.adds, rowCount)
	for k := range accs {
		switch a := &accs[k]; {
		case a.shared:
		case a.acc == accCount:
			p.adds = append(p.adds, a.off)
		case a.acc == accSumInt:
			p.adds = append(p.adds, a.off, a.off+8)
		case a.extremeInts():
			p.ints = append(p.ints, intExtreme{a.off, a.Kind == expr.AggMin})
		default:
			p.others = append(p.others, k)
		}
	}
}

// merge adds row src to row dst, of the same mergeable core.
func (c *aggCore) merge(dst, src []byte) {
	p := &c.merging
	if p.adds == nil {
		p.plan(c.accs)
	}
	for _, off := range p.adds {
		setWord(dst, off, word(dst, off)+word(src, off))
	}
	for _, x := range p.ints {
		if word(src, x.off+8) == 0 {
			continue
		}
		n, cur := word(src, x.off), word(dst, x.off)
		if word(dst, x.off+8) == 0 || n != cur && (n < cur) == x.least {
			setWord(dst, x.off, n)
			setWord(dst, x.off+8, 1)
		}
	}
	for _, k := range p.others {
		c.accs[k].merge(dst, src)
	}
}

// merge is that of an accumulator that the plan leaves.
func (a *accumulator) merge(dst, src []byte) {
	switch a.acc {
	case accSumFloat:
		sum := math.Float64frombits(uint64(word(dst, a.off))) + math.Float64frombits(uint64(word(src, a.off)))
		if a.Kind == expr.AggSum && a.ArgType.Kind == types.Float {
			sum = float64(float32(sum))
		}
		setWord(dst, a.off, int64(math.Float64bits(sum)))
		setWord(dst, a.off+8, word(dst, a.off+8)+word(src, a.off+8))
	case accSumDec:
		a.mergeDec(dst, src)
	case accExtreme, accExtreme2:
		a.mergeExtreme(dst, src)
	}
}

func (a *accumulator) mergeDec(dst, src []byte) {
	x := types.Int128{Lo: uint64(word(dst, a.off)), Hi: word(dst, a.off+8)}
	y := types.Int128{Lo: uint64(word(src, a.off)), Hi: word(src, a.off+8)}
	r := x.Add(y)
	n, flag := decCount(word(dst, a.off+16))
	m, more := decCount(word(src, a.off+16))
	flag |= more
	if (x.Sign() >= 0) == (y.Sign() >= 0) && (r.Sign() >= 0) != (x.Sign() >= 0) || !r.FitsDigits(types.MaxDecimalPrecision) {
		flag = overflowed
	}
	setWord(dst, a.off, int64(r.Lo))
	setWord(dst, a.off+8, r.Hi)
	setWord(dst, a.off+16, decWord(n+m, flag))
}

func (a *accumulator) mergeExtreme(dst, src []byte) {
	words := 1
	if a.acc == accExtreme2 {
		words = 2
	}
	has := a.off + 8*words
	if word(src, has) == 0 {
		return
	}
	if word(dst, has) != 0 {
		c := a.compareWords(word(src, a.off), word(src, a.off+8), word(dst, a.off), word(dst, a.off+8))
		if a.Kind == expr.AggMin && c >= 0 || a.Kind != expr.AggMin && c <= 0 {
			return
		}
	}
	copy(dst[a.off:has+8], src[a.off:has+8])
}

// compareWords compares two extremes by their words; the second is read for 128-bit values only.
func (a *accumulator) compareWords(x, xHi, y, yHi int64) int {
	switch a.ArgType.Phys() {
	case types.PhysF64:
		return compare(math.Float64frombits(uint64(x)), math.Float64frombits(uint64(y)))
	case types.PhysI128:
		return types.Int128{Lo: uint64(x), Hi: xHi}.Cmp(types.Int128{Lo: uint64(y), Hi: yHi})
	}
	return compare(x, y)
}
