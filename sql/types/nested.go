package types

import "encoding/binary"

// Access to parts of nested values in the form held in columns (AppendNested), without decoding the whole.

// NestedLen is the number of list entries of an encoded nested value: elements of an ARRAY, fields of a ROW, twice the
// entries of a MAP or MULTISET.
func NestedLen(src string) int {
	n, _, _ := uvarint(src)
	return int(n)
}

// NestedAt is list entry i of the encoded value src of type t, with ok = false when there is no such entry. Strings
// alias src; an entry of a nested type is decoded.
func NestedAt(src string, t Type, i int) (d Datum, ok bool) {
	n, rest, _ := uvarint(src)
	if i < 0 || uint64(i) >= n {
		return d, false
	}
	for j := 0; j < i; j++ {
		if rest, ok = skipValue(rest, t.entry(j)); !ok {
			return d, false
		}
	}
	d, _, err := DecodeValue(rest, t.entry(i))
	return d, err == nil
}

// NestedFind looks the key up in an encoded MAP and returns its value.
func NestedFind(src string, t Type, key Datum) (d Datum, ok bool) {
	var buf [64]byte
	want := AppendValue(buf[:0], key, *t.Key)
	n, rest, _ := uvarint(src)
	for i := 0; i+1 < int(n); i += 2 {
		after, ok := skipValue(rest, *t.Key)
		if !ok {
			return d, false
		}
		if rest[:len(rest)-len(after)] == string(want) {
			d, _, err := DecodeValue(after, *t.Elem)
			return d, err == nil
		}
		if rest, ok = skipValue(after, *t.Elem); !ok {
			return d, false
		}
	}
	return d, false
}

// skipValue drops one value of type t from the front of src.
func skipValue(src string, t Type) (rest string, ok bool) {
	if src == "" {
		return src, false
	}
	null := src[0] == 0
	if src = src[1:]; null {
		return src, true
	}
	if t.IsNested() {
		n, rest, ok := uvarint(src)
		for i := 0; ok && i < int(n); i++ {
			rest, ok = skipValue(rest, t.entry(i))
		}
		return rest, ok
	}
	size := 8
	switch t.Phys() {
	case PhysBool:
		size = 1
	case PhysI128:
		size = 16
	case PhysStr:
		n, rest, ok := uvarint(src)
		if !ok || n > uint64(len(rest)) {
			return src, false
		}
		return rest[n:], true
	}
	if len(src) < size {
		return src, false
	}
	return src[size:], true
}

// AppendListLen starts an encoded nested value of n list entries; the entries follow with AppendValue.
func AppendListLen(dst []byte, n int) []byte { return binary.AppendUvarint(dst, uint64(n)) }

// Entry is the type of list entry i of a nested value; see Datum.
func (t Type) Entry(i int) Type { return t.entry(i) }

// NestedEntries is the encoded entries of a nested value, one DecodeValue after the other: src without its length.
func NestedEntries(src string) string {
	_, rest, _ := uvarint(src)
	return rest
}
