package exec

import (
	"encoding/binary"
	"math"

	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/types"
)

// Rows as bytes, by columns: the number of rows; 1 and a kind per row, or 0; the number of columns; then per column its
// storage class, 1 and the validity bitmap, or 0, and the values: 8 bytes each, 16 of wide ones, 1 of booleans, of strings
// the lengths and then the bytes of all. Fixed-width numbers are little endian.

// appendRows appends the rows of p, which is dense as all batches of an exchange are.
func appendRows(dst []byte, p *pooled) []byte {
	dst = binary.AppendUvarint(dst, uint64(p.N))
	if p.Kinds == nil {
		dst = append(dst, 0)
	} else {
		dst = append(dst, 1)
		for _, k := range p.Kinds[:p.N] {
			dst = append(dst, byte(k))
		}
	}
	dst = binary.AppendUvarint(dst, uint64(len(p.Cols)))
	for _, v := range p.Cols {
		phys := v.Type.Phys()
		dst = append(dst, byte(phys))
		if v.Valid == nil {
			dst = append(dst, 0)
		} else {
			dst = append(dst, 1)
			for _, w := range v.Valid[:(p.N+63)>>6] {
				dst = binary.LittleEndian.AppendUint64(dst, w)
			}
		}
		switch phys {
		case types.PhysI64:
			for _, x := range v.I64[:p.N] {
				dst = binary.LittleEndian.AppendUint64(dst, uint64(x))
			}
		case types.PhysF64:
			for _, x := range v.F64[:p.N] {
				dst = binary.LittleEndian.AppendUint64(dst, math.Float64bits(x))
			}
		case types.PhysBool:
			for _, x := range v.Bool[:p.N] {
				dst = append(dst, boolByte(x))
			}
		case types.PhysStr:
			dst = appendStrings(dst, v.Str[:p.N])
		case types.PhysI128:
			for _, x := range v.I128[:p.N] {
				dst = binary.LittleEndian.AppendUint64(dst, uint64(x.Hi))
				dst = binary.LittleEndian.AppendUint64(dst, x.Lo)
			}
		}
	}
	return dst
}

func appendStrings(dst []byte, s []string) []byte {
	for _, x := range s {
		dst = binary.AppendUvarint(dst, uint64(len(x)))
	}
	for _, x := range s {
		dst = append(dst, x...)
	}
	return dst
}

// rows reads rows of schema s.
func (r *flightReader) rows(s *types.Schema) *pooled {
	p := newPooled(s, nil)
	n := int(min(r.uvarint(), 1<<30)) // rows without columns take no bytes
	if n > batch.Size {
		r.bad("%d rows in a batch", n)
	}
	if r.byte() != 0 {
		for _, k := range r.bytes(n) {
			if k > byte(types.Delete) {
				r.bad("row kind %d", k)
				return p
			}
			p.Kinds = append(p.Kinds, types.RowKind(k))
		}
	}
	if cols := r.count(); r.err == nil && cols != s.Len() {
		r.bad("%d columns, not %d", cols, s.Len())
	}
	for i := range p.Cols {
		r.column(p, i, n)
	}
	if r.err == nil {
		p.N = n
	}
	return p
}

func (r *flightReader) column(p *pooled, i, n int) {
	v := p.Cols[i]
	phys := v.Type.Phys()
	if got := types.Phys(r.byte()); r.err == nil && got != phys {
		r.bad("column %d has storage class %d, not %d", i, got, phys)
	}
	if r.byte() != 0 {
		if b := r.bytes((n + 63) >> 6 * 8); b != nil {
			v.Valid = make([]uint64, len(b)/8)
			for w := range v.Valid {
				v.Valid[w] = binary.LittleEndian.Uint64(b[8*w:])
			}
		}
	}
	switch phys {
	case types.PhysI64:
		if b := r.bytes(8 * n); b != nil {
			v.I64 = make([]int64, n)
			for k := range v.I64 {
				v.I64[k] = int64(binary.LittleEndian.Uint64(b[8*k:]))
			}
		}
	case types.PhysF64:
		if b := r.bytes(8 * n); b != nil {
			v.F64 = make([]float64, n)
			for k := range v.F64 {
				v.F64[k] = math.Float64frombits(binary.LittleEndian.Uint64(b[8*k:]))
			}
		}
	case types.PhysBool:
		if b := r.bytes(n); b != nil {
			v.Bool = make([]bool, n)
			for k := range v.Bool {
				v.Bool[k] = b[k] != 0
			}
		}
	case types.PhysStr:
		v.Str = r.strings(n)
	case types.PhysI128:
		if b := r.bytes(16 * n); b != nil {
			v.I128 = make([]types.Int128, n)
			for k := range v.I128 {
				v.I128[k] = types.Int128{Hi: int64(binary.LittleEndian.Uint64(b[16*k:])), Lo: binary.LittleEndian.Uint64(b[16*k+8:])}
			}
		}
	}
}

// strings reads n strings, which share one piece of memory.
func (r *flightReader) strings(n int) []string {
	if r.err != nil || n > len(r.b)-r.at {
		r.bad("%d strings in %d bytes", n, len(r.b)-r.at)
		return nil
	}
	lens, total := make([]int, n), 0
	for k := range lens {
		lens[k] = r.count()
		if total += lens[k]; total > len(r.b) {
			r.bad("strings of more bytes than there are")
			return nil
		}
	}
	all := string(r.bytes(total))
	if r.err != nil {
		return nil
	}
	out := make([]string, n)
	for k, l := range lens {
		out[k], all = all[:l], all[l:]
	}
	return out
}
