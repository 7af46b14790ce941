package format

import (
	"encoding/binary"
	"math/bits"
	"unicode/utf8"
	"unsafe"
)

// The scanner's functions take the message and a position and return the position after what they read, or -1 when it
// is not JSON. They accept what Jackson accepts as Flink configures it: control characters inside strings are allowed,
// bytes that are not UTF-8 are not.

const (
	ones  = 0x0101010101010101
	highs = 0x8080808080808080
	// maxDepth is Jackson's limit on nesting.
	maxDepth = 1000
)

// stringStop is the first position at or after p of a quote, a backslash or a byte ≥ 0x80, eight bytes at a time.
// len(b) when there is none.
func stringStop(b []byte, p int) int {
	for p+8 <= len(b) {
		w := binary.LittleEndian.Uint64(b[p:])
		q := w ^ (0x22 * ones)
		s := w ^ (0x5c * ones)
		// A borrow makes false marks only above a true one, so the lowest mark is exact.
		m := ((q-ones)&^q | (s-ones)&^s | w) & highs
		if m != 0 {
			return p + bits.TrailingZeros64(m)>>3
		}
		p += 8
	}
	for p < len(b) && b[p] != '"' && b[p] != '\\' && b[p] < utf8.RuneSelf {
		p++
	}
	return p
}

func space(c byte) bool { return c == ' ' || c == '\n' || c == '\t' || c == '\r' }

func skipSpace(b []byte, p int) int {
	for p < len(b) && space(b[p]) {
		p++
	}
	return p
}

// skipString reads a string whose opening quote is before p. plain is false when it holds escapes.
func skipString(b []byte, p int) (next int, plain bool) {
	q := stringStop(b, p)
	if q < len(b) && b[q] == '"' {
		return q + 1, true
	}
	return skipHardString(b, p, q)
}

// skipHardString goes on at q, the first byte of the string from p that is neither plain ASCII nor the end.
func skipHardString(b []byte, p, q int) (next int, plain bool) {
	plain = true
	ascii := true
	for {
		if q >= len(b) {
			return -1, false
		}
		switch c := b[q]; {
		case c == '"':
			if !ascii && !utf8.Valid(b[p:q]) {
				return -1, false
			}
			return q + 1, plain
		case c == '\\':
			plain = false
			n := escapeLen(b, q)
			if n < 0 {
				return -1, false
			}
			q += n
		case c >= utf8.RuneSelf:
			ascii = false
			q++
			for q < len(b) && b[q] >= utf8.RuneSelf {
				q++
			}
			continue
		}
		q = stringStop(b, q)
	}
}

// escapeLen is the length of the escape sequence at q, -1 when it is none.
func escapeLen(b []byte, q int) int {
	if q+1 >= len(b) {
		return -1
	}
	switch b[q+1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return 2
	case 'u':
		if q+6 > len(b) {
			return -1
		}
		if _, ok := hex4(b[q+2:]); !ok {
			return -1
		}
		return 6
	}
	return -1
}

func hex4(b []byte) (rune, bool) {
	var r rune
	for _, c := range b[:4] {
		switch {
		case c >= '0' && c <= '9':
			c -= '0'
		case c >= 'a' && c <= 'f':
			c -= 'a' - 10
		case c >= 'A' && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, false
		}
		r = r<<4 | rune(c)
	}
	return r, true
}

// appendUnescaped appends the meaning of the checked string content s. A lone surrogate becomes U+FFFD.
func appendUnescaped(dst, s []byte) []byte {
	for i := 0; i < len(s); {
		c := s[i]
		if c != '\\' {
			j := i + 1
			for j < len(s) && s[j] != '\\' {
				j++
			}
			dst = append(dst, s[i:j]...)
			i = j
			continue
		}
		switch c = s[i+1]; c {
		case 'b':
			c = '\b'
		case 'f':
			c = '\f'
		case 'n':
			c = '\n'
		case 'r':
			c = '\r'
		case 't':
			c = '\t'
		case 'u':
			r, _ := hex4(s[i+2:])
			i += 6
			if r >= 0xd800 && r < 0xe000 {
				r, i = lowSurrogate(r, s, i)
			}
			dst = utf8.AppendRune(dst, r)
			continue
		}
		dst = append(dst, c)
		i += 2
	}
	return dst
}

// lowSurrogate completes the pair that starts with r; i is behind r's escape.
func lowSurrogate(r rune, s []byte, i int) (rune, int) {
	if r < 0xdc00 && i+6 <= len(s) && s[i] == '\\' && s[i+1] == 'u' {
		if lo, ok := hex4(s[i+2:]); ok && lo >= 0xdc00 && lo < 0xe000 {
			return 0x10000 + (r-0xd800)<<10 + (lo - 0xdc00), i + 6
		}
	}
	return utf8.RuneError, i
}

// skipNumber reads a number; isFloat says that it has a fraction or an exponent.
func skipNumber(b []byte, p int) (next int, isFloat bool) {
	if p < len(b) && b[p] == '-' {
		p++
	}
	st := p
	for p < len(b) && b[p]-'0' <= 9 {
		p++
	}
	if p == st || (b[st] == '0' && p > st+1) {
		return -1, false
	}
	if p < len(b) && b[p] == '.' {
		isFloat = true
		p++
		st = p
		for p < len(b) && b[p]-'0' <= 9 {
			p++
		}
		if p == st {
			return -1, false
		}
	}
	if p < len(b) && b[p]|0x20 == 'e' {
		isFloat = true
		p++
		if p < len(b) && (b[p] == '+' || b[p] == '-') {
			p++
		}
		st = p
		for p < len(b) && b[p]-'0' <= 9 {
			p++
		}
		if p == st {
			return -1, false
		}
	}
	// A number ends at a delimiter: "12x" is no number followed by something.
	if p < len(b) && !delimits(b[p]) {
		return -1, false
	}
	return p, isFloat
}

func delimits(c byte) bool { return space(c) || c == ',' || c == '}' || c == ']' }

// skipWord reads the literal w.
func skipWord(b []byte, p int, w string) int {
	if len(b)-p < len(w) || string(b[p:p+len(w)]) != w {
		return -1
	}
	p += len(w)
	if p < len(b) && !delimits(b[p]) {
		return -1
	}
	return p
}

// skipValue reads any value and checks it completely.
func skipValue(b []byte, p, depth int) int {
	if p >= len(b) {
		return -1
	}
	switch b[p] {
	case '"':
		p, _ = skipString(b, p+1)
		return p
	case '{', '[':
		if depth >= maxDepth {
			return -1
		}
		return skipContainer(b, p, depth+1)
	case 't':
		return skipWord(b, p, "true")
	case 'f':
		return skipWord(b, p, "false")
	case 'n':
		return skipWord(b, p, "null")
	}
	p, _ = skipNumber(b, p)
	return p
}

func skipContainer(b []byte, p, depth int) int {
	isObject := b[p] == '{'
	end := b[p] + 2 // '}' and ']' follow their opening character by two
	p = skipSpace(b, p+1)
	if p < len(b) && b[p] == end {
		return p + 1
	}
	for {
		if isObject {
			if p = skipKey(b, p); p < 0 {
				return -1
			}
		}
		if p = skipValue(b, p, depth); p < 0 {
			return -1
		}
		if p = skipSpace(b, p); p >= len(b) {
			return -1
		}
		if b[p] == end {
			return p + 1
		}
		if b[p] != ',' {
			return -1
		}
		p = skipSpace(b, p+1)
	}
}

// skipKey reads `"name" :` and the space after it.
func skipKey(b []byte, p int) int {
	if p >= len(b) || b[p] != '"' {
		return -1
	}
	if p, _ = skipString(b, p+1); p < 0 {
		return -1
	}
	if p = skipSpace(b, p); p >= len(b) || b[p] != ':' {
		return -1
	}
	return skipSpace(b, p+1)
}

// text is b as a string without a copy. Messages are immutable and never recycled, so this is safe.
func text(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// bytesOf is s as bytes without a copy, to read only.
func bytesOf(s string) []byte { return unsafe.Slice(unsafe.StringData(s), len(s)) }

// arena holds bytes that strings alias. A full chunk is left to the collector, never reused.
type arena struct{ free []byte }

const arenaChunk = 64 << 10

// keep moves b into the arena.
func (a *arena) keep(b []byte) string {
	if len(b) > arenaChunk/8 {
		return string(b)
	}
	if len(b) > cap(a.free)-len(a.free) {
		a.free = make([]byte, 0, arenaChunk)
	}
	n := len(a.free)
	a.free = append(a.free, b...)
	return text(a.free[n:])
}
