package types

import (
	"encoding/binary"
	"fmt"
	"math"
)

// The value encoding: one datum as bytes, given its type. Columns of nested types and rows in state tables use it. Two
// encodings of one type are equal exactly when the values are the same for GROUP BY (NaNs by bits, 0.0 and -0.0 apart,
// as Flink compares binary rows). It is not order-preserving; checkpoint keys have their own codec.
//
//	any            0x00 = NULL, else 0x01 then
//	PhysBool       1 byte            PhysI64, PhysF64   8 bytes little endian        PhysI128   16 bytes (lo, hi)
//	PhysStr        uvarint length, bytes
//	nested         uvarint number of list entries, then each entry with its own type

// AppendValue appends the encoding of d, a value of type t, to dst.
func AppendValue(dst []byte, d Datum, t Type) []byte {
	if d.IsNull {
		return append(dst, 0)
	}
	dst = append(dst, 1)
	if t.IsNested() {
		return AppendNested(dst, d, t)
	}
	switch t.Phys() {
	case PhysBool:
		if d.Bool {
			return append(dst, 1)
		}
		return append(dst, 0)
	case PhysF64:
		return binary.LittleEndian.AppendUint64(dst, math.Float64bits(d.F64))
	case PhysI128:
		dst = binary.LittleEndian.AppendUint64(dst, uint64(d.I64))
		return binary.LittleEndian.AppendUint64(dst, uint64(d.Hi))
	case PhysStr:
		dst = binary.AppendUvarint(dst, uint64(len(d.Str)))
		return append(dst, d.Str...)
	}
	return binary.LittleEndian.AppendUint64(dst, uint64(d.I64))
}

// AppendNested appends the non-NULL nested value d without the leading NULL byte. This is the form held in columns.
func AppendNested(dst []byte, d Datum, t Type) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(d.List)))
	for i := range d.List {
		dst = AppendValue(dst, d.List[i], t.entry(i))
	}
	return dst
}

// entry is the type of list entry i of a nested value.
func (t Type) entry(i int) Type {
	switch t.Kind {
	case Row:
		return t.Fields[i].Type
	case Map:
		if i%2 == 0 {
			return *t.Key
		}
	case Multiset:
		if i%2 == 1 {
			return Type{Kind: BigInt}
		}
	}
	return *t.Elem
}

// DecodeValue reads one value of type t from the front of src and returns it with the rest. Strings alias src.
func DecodeValue(src string, t Type) (d Datum, rest string, err error) {
	if len(src) == 0 {
		return d, src, errShort(t)
	}
	null := src[0] == 0
	src = src[1:]
	if null {
		return NullDatum, src, nil
	}
	if t.IsNested() {
		return decodeNested(src, t)
	}
	switch t.Phys() {
	case PhysBool:
		if len(src) < 1 {
			return d, src, errShort(t)
		}
		return BoolDatum(src[0] != 0), src[1:], nil
	case PhysF64:
		v, ok := le64(src)
		if !ok {
			return d, src, errShort(t)
		}
		return FloatDatum(math.Float64frombits(v)), src[8:], nil
	case PhysI128:
		lo, _ := le64(src)
		if len(src) < 16 {
			return d, src, errShort(t)
		}
		hi, _ := le64(src[8:])
		return Datum{I64: int64(lo), Hi: int64(hi)}, src[16:], nil
	case PhysStr:
		n, rest, ok := uvarint(src)
		if !ok || uint64(len(rest)) < n {
			return d, src, errShort(t)
		}
		return StrDatum(rest[:n]), rest[n:], nil
	}
	v, ok := le64(src)
	if !ok {
		return d, src, errShort(t)
	}
	return IntDatum(int64(v)), src[8:], nil
}

// DecodeNested reads a nested value in the form held in columns (no NULL byte). Strings alias src.
func DecodeNested(src string, t Type) (Datum, error) {
	d, rest, err := decodeNested(src, t)
	if err == nil && rest != "" {
		err = fmt.Errorf("value of type %s has %d bytes too many", t, len(rest))
	}
	return d, err
}

func decodeNested(src string, t Type) (Datum, string, error) {
	n, rest, ok := uvarint(src)
	if !ok || n > uint64(len(rest)) || (t.Kind == Row && n != uint64(len(t.Fields))) {
		return Datum{}, src, errShort(t)
	}
	list := make([]Datum, n)
	var err error
	for i := range list {
		if list[i], rest, err = DecodeValue(rest, t.entry(i)); err != nil {
			return Datum{}, src, err
		}
	}
	return Datum{List: list}, rest, nil
}

func errShort(t Type) error { return fmt.Errorf("encoded value of type %s is damaged", t) }

func le64(s string) (uint64, bool) {
	if len(s) < 8 {
		return 0, false
	}
	_ = s[7]
	return uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 |
		uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56, true
}

func uvarint(s string) (v uint64, rest string, ok bool) {
	for i := 0; i < len(s) && i < 10; i++ {
		v |= uint64(s[i]&0x7f) << (7 * i)
		if s[i] < 0x80 {
			return v, s[i+1:], true
		}
	}
	return 0, s, false
}
