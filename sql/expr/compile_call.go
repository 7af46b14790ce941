package expr

import (
	"math/bits"
	"strings"

	"github.com/streamsql/streamsql/sql/batch"
)

// Calls that are compiled to something other than their function alone, because of what is beside or below them.

// call compiles a call of a registered function. Names are enough to know the built-in ones: no other function may have them.
func (c *compiler) call(n *node, e *Call) error {
	switch e.Func.Name {
	case "SPLIT_INDEX":
		if done, err := c.splitIndex(n, e); done || err != nil {
			return err
		}
	case "CHAR_LENGTH":
		if done, err := c.lengthOfReplaced(n, e); done || err != nil {
			return err
		}
	}
	n.run, n.lazy = callKernel(e, c.session), true
	return c.kids(n, e.Children()...)
}

// textOf is the value of e when that is a text and not NULL.
func textOf(e Expr) (string, bool) {
	l, ok := e.(*Literal)
	if !ok || l.Value.IsNull || !l.T.IsString() {
		return "", false
	}
	return l.Value.Str, true
}

// splitKey is what calls of SPLIT_INDEX have in common that cut the same text.
type splitKey struct {
	text int // number of the expression
	sep  string
}

// splitPlace is, for each row, a piece that was found in this batch and where it begins, so that the next call need not begin
// at the start of the text.
type splitPlace struct {
	calls int
	seq   uint64
	piece []int32
	at    []int32
}

// splitIndex compiles SPLIT_INDEX(x, 'sep', constant); done is false for others.
func (c *compiler) splitIndex(n *node, e *Call) (done bool, err error) {
	args := e.Children()
	sep, ok := textOf(args[1])
	index, isConst := args[2].(*Literal)
	if !ok || sep == "" || !isConst || index.Value.IsNull || index.Value.I64 < 0 || !args[0].Type().IsString() {
		return false, nil
	}
	key := splitKey{c.id(args[0]), sep}
	if c.splits == nil {
		c.splits = map[splitKey]*splitPlace{}
	}
	p := c.splits[key]
	if p == nil {
		p = &splitPlace{}
		c.splits[key] = p
	}
	p.calls++
	n.run, n.lazy = strict(e.Type(), false, splitKernel(sep, index.Value.I64, p)), true
	return true, c.kids(n, args[0])
}

func splitKernel(sep string, index int64, p *splitPlace) kernel {
	return func(c *evalCtx, n *node, args []*batch.Vec, out *batch.Vec, sel []int32, rows int) {
		v := args[0]
		shared := p.calls > 1 && !v.Const
		if shared && p.seq != c.seq {
			p.seq = c.seq
			p.piece, p.at = resized(p.piece, c.n), resized(p.at, c.n)
			clear(p.piece)
			clear(p.at)
		}
		for _, r := range rowsOf(c, sel, rows) {
			s := v.Str[v.Idx(int(r))]
			i, at := int64(0), 0
			if shared && int64(p.piece[r]) <= index {
				i, at = int64(p.piece[r]), int(p.at[r])
			}
			i, at, end := cutPiece(s, sep, i, at, index)
			if shared {
				p.piece[r], p.at[r] = int32(i), int32(at)
			}
			if i < index || s == "" {
				n.setNull(int(r), rows)
				continue
			}
			out.Str[r] = s[at:end]
		}
	}
}

// cutPiece goes from piece i of s, which begins at at, on to piece index, or to the last one. at and end are where the one it came to
// begins and ends.
func cutPiece(s, sep string, i int64, at int, index int64) (_ int64, _, end int) {
	if len(sep) == 1 {
		return cutByte(s, sep[0], i, at, index)
	}
	for {
		k := strings.Index(s[at:], sep)
		if k < 0 {
			return i, at, len(s)
		}
		if i == index {
			return i, at, at + k
		}
		at += k + len(sep)
		i++
	}
}

// cutByte is cutPiece for one byte: pieces are short, so eight bytes are compared at a time without a call for each piece.
func cutByte(s string, sep byte, i int64, at int, index int64) (_ int64, _, end int) {
	pos := at
	for ; pos+8 <= len(s); pos += 8 {
		w := word(s, pos) ^ uint64(sep)*eachByte
		hits := ^((w&^highBits + ^uint64(highBits)) | w | ^uint64(highBits)) // the high bit of each byte that is sep
		for ; hits != 0; hits &= hits - 1 {
			k := pos + bits.TrailingZeros64(hits)>>3
			if i == index {
				return i, at, k
			}
			i, at = i+1, k+1
		}
	}
	for ; pos < len(s); pos++ {
		if s[pos] != sep {
			continue
		}
		if i == index {
			return i, at, pos
		}
		i, at = i+1, pos+1
	}
	return i, at, len(s)
}

func resized(s []int32, n int) []int32 {
	if cap(s) < n {
		return make([]int32, n)
	}
	return s[:n]
}

// lengthOfReplaced compiles CHAR_LENGTH(REPLACE(x, 'old', 'new')) without making the text: its length follows from that of x and how
// often old is in it.
func (c *compiler) lengthOfReplaced(n *node, e *Call) (done bool, err error) {
	inner, ok := e.Children()[0].(*Call)
	if !ok || inner.Func.Name != "REPLACE" {
		return false, nil
	}
	args := inner.Children()
	old, ok := textOf(args[1])
	text, isText := textOf(args[2])
	if !ok || !isText || old == "" {
		return false, nil
	}
	more := runeCount(text) - runeCount(old)
	n.run, n.lazy = strict(e.Type(), false, func(c *evalCtx, n *node, args []*batch.Vec, out *batch.Vec, sel []int32, rows int) {
		x, length := args[0], args[1]
		for _, r := range rowsOf(c, sel, rows) {
			out.I64[r] = length.I64[length.Idx(int(r))] + more*int64(strings.Count(x.Str[x.Idx(int(r))], old))
		}
	}), true
	return true, c.kids(n, args[0], e.With([]Expr{args[0]}))
}
