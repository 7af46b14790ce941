package format

import (
	"unicode/utf16"
	"unicode/utf8"
)

// charset is a character set of the raw format.
type charset uint8

const (
	utf8Set charset = iota
	asciiSet
	latin1Set
	utf16BE
	utf16LE
	utf16BOM // big endian unless a byte order mark says otherwise; written with one, as Java does
)

var charsets = map[string]charset{
	"UTF-8": utf8Set, "UTF8": utf8Set, "US-ASCII": asciiSet, "ASCII": asciiSet, "ISO-8859-1": latin1Set, "LATIN1": latin1Set,
	"UTF-16": utf16BOM, "UTF-16BE": utf16BE, "UTF-16LE": utf16LE,
}

// isUTF8 reports whether m means itself: the usual case, which needs no copy.
func (c charset) isUTF8(m []byte) bool {
	switch c {
	case utf8Set:
		return utf8.Valid(m)
	case asciiSet, latin1Set:
		for _, b := range m {
			if b >= utf8.RuneSelf {
				return false
			}
		}
		return true
	}
	return len(m) == 0
}

// decode appends the meaning of m; what has none becomes U+FFFD.
func (c charset) decode(dst, m []byte) []byte {
	switch c {
	case utf8Set:
		for len(m) > 0 {
			r, n := utf8.DecodeRune(m)
			dst = utf8.AppendRune(dst, r)
			m = m[n:]
		}
		return dst
	case asciiSet, latin1Set:
		for _, b := range m {
			r := rune(b)
			if c == asciiSet && b >= utf8.RuneSelf {
				r = utf8.RuneError
			}
			dst = utf8.AppendRune(dst, r)
		}
		return dst
	}
	little := c == utf16LE
	if c == utf16BOM && len(m) >= 2 && (m[0] == 0xff && m[1] == 0xfe || m[0] == 0xfe && m[1] == 0xff) {
		little = m[0] == 0xff
		m = m[2:]
	}
	unit := func(i int) rune {
		if little {
			return rune(m[i]) | rune(m[i+1])<<8
		}
		return rune(m[i])<<8 | rune(m[i+1])
	}
	i := 0
	for ; i+1 < len(m); i += 2 {
		r := unit(i)
		if utf16.IsSurrogate(r) {
			pair := utf8.RuneError
			if i+3 < len(m) {
				pair = utf16.DecodeRune(r, unit(i+2))
			}
			if r = pair; pair != utf8.RuneError {
				i += 2
			}
		}
		dst = utf8.AppendRune(dst, r)
	}
	if i < len(m) {
		dst = utf8.AppendRune(dst, utf8.RuneError)
	}
	return dst
}

// append appends s in the character set; what it cannot hold becomes '?'.
func (c charset) append(dst []byte, s string) []byte {
	switch c {
	case utf8Set:
		return append(dst, s...)
	case asciiSet, latin1Set:
		limit := rune(0x7f)
		if c == latin1Set {
			limit = 0xff
		}
		for _, r := range s {
			if r > limit {
				r = '?'
			}
			dst = append(dst, byte(r))
		}
		return dst
	}
	if c == utf16BOM {
		dst = append(dst, 0xfe, 0xff)
	}
	var units [2]uint16
	for _, r := range s {
		for _, u := range utf16.AppendRune(units[:0], r) {
			if c == utf16LE {
				dst = append(dst, byte(u), byte(u>>8))
			} else {
				dst = append(dst, byte(u>>8), byte(u))
			}
		}
	}
	return dst
}
