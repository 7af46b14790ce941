package op

import (
	"encoding/binary"
	"math"
	"slices"
	"strings"

	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/types"
)

// rowCodec encodes rows for state a batch and a column at a time. A row is its length (4 bytes, little endian), a
// bit per column that is set for NULL, a slot of fixed size per column, then the bytes of its texts. The slot of a text
// is where it ends in the row; it begins where the one before ends. A short row, as newShortCodec makes it, has no length if
// it has no texts.
type rowCodec struct {
	fields []rowField
	lead   int  // bytes of the length
	texts  bool // there are columns of texts
	head   int  // bytes before the texts

	at    []int // per row being encoded, where its next text goes; per row being decoded, where it is in the row
	moved []int // per row being decoded, what is added to a place in the row for that in the copy of all texts
}

// rowField is a column and where its slot is.
type rowField struct {
	phys types.Phys
	col  int
	slot int
}

const rowLength = 4

// slotBytes are the sizes of slots.
func slotBytes(p types.Phys) int {
	switch p {
	case types.PhysBool:
		return 1
	case types.PhysStr:
		return 4
	case types.PhysI128:
		return 16
	}
	return 8
}

func newRowCodec(s *types.Schema) *rowCodec { return makeRowCodec(s, nil, rowLength) }

// newShortCodec leaves out the columns omit, which have to be known otherwise where rows are decoded.
func newShortCodec(s *types.Schema, omit []int) *rowCodec {
	for i, c := range s.Columns {
		if c.Type.Phys() == types.PhysStr && !slices.Contains(omit, i) {
			return makeRowCodec(s, omit, rowLength)
		}
	}
	return makeRowCodec(s, omit, 0)
}

func makeRowCodec(s *types.Schema, omit []int, lead int) *rowCodec {
	c := &rowCodec{lead: lead}
	for i, col := range s.Columns {
		if !slices.Contains(omit, i) {
			c.fields = append(c.fields, rowField{phys: col.Type.Phys(), col: i})
		}
	}
	c.head = max(lead+(len(c.fields)+7)/8, 1)
	for k := range c.fields {
		f := &c.fields[k]
		f.slot = c.head
		c.head += slotBytes(f.phys)
		c.texts = c.texts || f.phys == types.PhysStr
	}
	return c
}

// fixed reports that all rows are c.head bytes long: they have no texts and no length.
func (c *rowCodec) fixed() bool { return c.lead == 0 }

// size is that of the row that rows begins with.
func (c *rowCodec) size(rows []byte) (int, error) {
	n := c.head
	if c.lead > 0 && len(rows) >= rowLength {
		n = int(binary.LittleEndian.Uint32(rows))
	}
	if n < c.head || n > len(rows) {
		return 0, errJoinState
	}
	return n, nil
}

// slottedFormat names the encoding.
func slottedFormat(s *types.Schema) string { return strings.Replace(rowFormat(s), "row/1", "row/2", 1) }

// encodedRows are the encodings of the rows of a batch that count, back to back.
type encodedRows struct {
	buf    []byte
	starts []int // of each, and behind the last
}

func (e *encodedRows) row(i int) []byte { return e.buf[e.starts[i]:e.starts[i+1]] }

// encode fills e with the rows of b that count.
func (c *rowCodec) encode(b *batch.Batch, e *encodedRows) {
	n := b.Len()
	e.starts, c.at = resize(e.starts, n+1), resize(c.at, n)
	c.layOut(b, e)
	bitmap := c.head
	if len(c.fields) > 0 {
		bitmap = c.fields[0].slot
	}
	if c.fixed() {
		for at := 0; at < len(e.buf); at += c.head {
			clear(e.buf[at : at+bitmap])
		}
	} else {
		c.begin(e, bitmap)
	}
	for k, f := range c.fields {
		v := b.Cols[f.col]
		if v.Valid != nil {
			c.encodeNulls(b, v, k, e)
		}
		c.encodeColumn(b, v, f, e)
	}
}

// begin writes the lengths of rows and clears their bits.
func (c *rowCodec) begin(e *encodedRows, bitmap int) {
	for i, start := range e.starts[:len(c.at)] {
		row := e.buf[start:e.starts[i+1]]
		if c.lead > 0 {
			binary.LittleEndian.PutUint32(row, uint32(len(row)))
		}
		clear(row[c.lead:bitmap])
		c.at[i] = start + c.head
	}
}

// layOut finds the places of the rows and makes room for them.
func (c *rowCodec) layOut(b *batch.Batch, e *encodedRows) {
	n := b.Len()
	if !c.texts {
		for i := range e.starts {
			e.starts[i] = i * c.head
		}
		e.buf = resize(e.buf, n*c.head)
		return
	}
	sizes := c.at[:n]
	for i := range sizes {
		sizes[i] = c.head
	}
	for _, f := range c.fields {
		if f.phys != types.PhysStr {
			continue
		}
		v := b.Cols[f.col]
		for i := range sizes {
			if r := b.Row(i); !v.IsNull(r) {
				sizes[i] += len(v.Str[v.Idx(r)])
			}
		}
	}
	end := 0
	for i, s := range sizes {
		e.starts[i] = end
		end += s
	}
	e.starts[n] = end
	e.buf = resize(e.buf, end)
}

func (c *rowCodec) encodeNulls(b *batch.Batch, v *batch.Vec, k int, e *encodedRows) {
	for i := range c.at {
		if v.IsNull(b.Row(i)) {
			e.buf[e.starts[i]+c.lead+k>>3] |= 1 << (k & 7)
		}
	}
}

// encodeColumn stores a column's values; that of a NULL is what the column has there.
func (c *rowCodec) encodeColumn(b *batch.Batch, v *batch.Vec, f rowField, e *encodedRows) {
	switch f.phys {
	case types.PhysI64:
		if c.fixed() && b.Sel != nil && !v.Const {
			at := f.slot
			for _, r := range b.Sel {
				binary.LittleEndian.PutUint64(e.buf[at:], uint64(v.I64[r]))
				at += c.head
			}
			return
		}
		if b.Sel != nil && !v.Const {
			for i, r := range b.Sel {
				binary.LittleEndian.PutUint64(e.buf[e.starts[i]+f.slot:], uint64(v.I64[r]))
			}
			return
		}
		for i := range c.at {
			binary.LittleEndian.PutUint64(e.buf[e.starts[i]+f.slot:], uint64(v.I64[v.Idx(b.Row(i))]))
		}
	case types.PhysF64:
		for i := range c.at {
			binary.LittleEndian.PutUint64(e.buf[e.starts[i]+f.slot:], math.Float64bits(v.F64[v.Idx(b.Row(i))]))
		}
	case types.PhysBool:
		for i := range c.at {
			e.buf[e.starts[i]+f.slot] = byte(boolWord(v.Bool[v.Idx(b.Row(i))]))
		}
	case types.PhysI128:
		for i := range c.at {
			x, at := v.I128[v.Idx(b.Row(i))], e.starts[i]+f.slot
			binary.LittleEndian.PutUint64(e.buf[at:], x.Lo)
			binary.LittleEndian.PutUint64(e.buf[at+8:], uint64(x.Hi))
		}
	case types.PhysStr:
		for i, at := range c.at {
			if r := b.Row(i); !v.IsNull(r) {
				at += copy(e.buf[at:], v.Str[v.Idx(r)])
				c.at[i] = at
			}
			binary.LittleEndian.PutUint32(e.buf[e.starts[i]+f.slot:], uint32(at-e.starts[i]))
		}
	}
}

// millis is the value of column k, of type t, of a row: a timestamp that is not NULL, in ms.
func (c *rowCodec) millis(row []byte, k int, t types.Type) (int64, error) {
	if len(row) < c.head {
		return 0, errJoinState
	}
	v := batch.Vec{Type: t}
	if at := c.fields[k].slot; t.Phys() == types.PhysI128 {
		v.I128 = []types.Int128{{Lo: uint64(word(row, at)), Hi: word(row, at+8)}}
	} else {
		return floorDiv(word(row, at), 1000), nil
	}
	return millis(&v, 0), nil
}

// decode appends rows, as encode made them, to the columns they have of cols. The texts of all are copied at once.
func (c *rowCodec) decode(rows [][]byte, cols []*batch.ColBuilder) error {
	texts, err := c.copyTexts(rows)
	if err != nil {
		return err
	}
	first := 0
	for _, f := range c.fields {
		col := cols[f.col]
		first = col.AppendN(len(rows))
		switch f.phys {
		case types.PhysI64:
			for i, row := range rows {
				col.I64[first+i] = int64(binary.LittleEndian.Uint64(row[f.slot:]))
			}
		case types.PhysF64:
			for i, row := range rows {
				col.F64[first+i] = math.Float64frombits(binary.LittleEndian.Uint64(row[f.slot:]))
			}
		case types.PhysBool:
			for i, row := range rows {
				col.Bool[first+i] = row[f.slot] != 0
			}
		case types.PhysI128:
			for i, row := range rows {
				col.I128[first+i] = types.Int128{Lo: binary.LittleEndian.Uint64(row[f.slot:]), Hi: int64(binary.LittleEndian.Uint64(row[f.slot+8:]))}
			}
		case types.PhysStr:
			if err := c.decodeTexts(rows, f.slot, texts, col.Str[first:]); err != nil {
				return err
			}
		}
	}
	c.decodeNulls(rows, cols, first)
	return nil
}

// copyTexts copies the texts of rows into one string.
func (c *rowCodec) copyTexts(rows [][]byte) (string, error) {
	c.moved, c.at = resize(c.moved, len(rows)), resize(c.at, len(rows))
	total := 0
	for i, row := range rows {
		if len(row) < c.head {
			return "", errJoinState
		}
		c.moved[i], c.at[i] = total-c.head, c.head
		total += len(row) - c.head
	}
	if !c.texts {
		return "", nil
	}
	var all strings.Builder
	all.Grow(total)
	for _, row := range rows {
		all.Write(row[c.head:])
	}
	return all.String(), nil
}

// decodeTexts stores the texts of one column in dst.
func (c *rowCodec) decodeTexts(rows [][]byte, slot int, texts string, dst []string) error {
	for i, row := range rows {
		from, to := c.at[i], int(binary.LittleEndian.Uint32(row[slot:]))
		if to < from || to > len(row) {
			return errJoinState
		}
		c.at[i] = to
		dst[i] = texts[c.moved[i]+from : c.moved[i]+to]
	}
	return nil
}

// decodeNulls makes the values of rows NULL that are; first is the index of the first row.
func (c *rowCodec) decodeNulls(rows [][]byte, cols []*batch.ColBuilder, first int) {
	few := len(c.fields) > 0 && len(c.fields) <= 8
	for i, row := range rows {
		if !few || row[c.lead] != 0 {
			c.nullify(row, cols, first+i)
		}
	}
}

// nullify makes the values at place at NULL that are in row.
func (c *rowCodec) nullify(row []byte, cols []*batch.ColBuilder, at int) {
	for k := 0; k < len(c.fields); k += 8 {
		bits := row[c.lead+k>>3]
		for j := k; bits != 0 && j < len(c.fields); j, bits = j+1, bits>>1 {
			if bits&1 != 0 {
				cols[c.fields[j].col].Nullify(at)
			}
		}
	}
}

// decodeFixed is decode, of a fixed codec, for n rows in chunks, in each of which rows follow one another.
func (c *rowCodec) decodeFixed(chunks [][]byte, n int, cols []*batch.ColBuilder) {
	first := 0
	for _, f := range c.fields {
		col := cols[f.col]
		first = col.AppendN(n)
		i := first
		for _, rows := range chunks {
			for at := f.slot; at < len(rows); at += c.head {
				switch f.phys {
				case types.PhysI64:
					col.I64[i] = int64(binary.LittleEndian.Uint64(rows[at:]))
				case types.PhysF64:
					col.F64[i] = math.Float64frombits(binary.LittleEndian.Uint64(rows[at:]))
				case types.PhysBool:
					col.Bool[i] = rows[at] != 0
				case types.PhysI128:
					col.I128[i] = types.Int128{Lo: binary.LittleEndian.Uint64(rows[at:]), Hi: int64(binary.LittleEndian.Uint64(rows[at+8:]))}
				}
				i++
			}
		}
	}
	if len(c.fields) == 0 {
		return
	}
	few, i := len(c.fields) <= 8, first
	for _, rows := range chunks {
		for at := 0; at < len(rows); at += c.head {
			if !few || rows[at] != 0 {
				c.nullify(rows[at:], cols, i)
			}
			i++
		}
	}
}
