package expr

import (
	"encoding/binary"
	"unicode/utf8"
	"unsafe"

	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/diag"
)

// UPPER, LOWER and the number of code points, of eight bytes at a time while they are ASCII.

const (
	eachByte = 0x0101010101010101
	highBits = 0x80 * eachByte
)

// letters is the high bit of each byte of the ASCII bytes w that is one of the 26 from first on.
func letters(w uint64, first byte) uint64 {
	return (w + uint64(0x80-first)*eachByte) &^ (w + uint64(0x80-first-26)*eachByte) & highBits
}

// word is bytes i to i+7 of s.
func word(s string, i int) uint64 {
	return binary.LittleEndian.Uint64(unsafe.Slice(unsafe.StringData(s[i:i+8]), 8))
}

// caseEval changes the case of the letters from first on. A text that stays as it is is not copied; whole makes the text of
// one that is not ASCII.
func caseEval(first byte, whole func(dst []byte, s string) []byte) func(Session) Eval {
	return func(Session) Eval {
		ar := &arena{}
		return func(args []*batch.Vec, rows []int32, _ int, out *batch.Vec, _ func(int32, *diag.Error)) {
			ar.reset()
			v := args[0]
			for _, r := range rows {
				s := v.Str[v.Idx(int(r))]
				i := unchanged(s, first)
				if i == len(s) {
					out.Str[r] = s
					continue
				}
				ar.room(len(s))
				at := len(ar.buf)
				ar.buf = append(ar.buf, s...)
				if !flip(ar.buf[at:], i, first) {
					ar.buf = whole(ar.buf[:at], s)
				}
				out.Str[r] = ar.take()
			}
		}
	}
}

// unchanged is how many bytes of s are ASCII and none of the letters.
func unchanged(s string, first byte) int {
	i := 0
	for ; i+8 <= len(s); i += 8 {
		if w := word(s, i); w&highBits != 0 || letters(w, first) != 0 {
			break
		}
	}
	for i < len(s) && s[i] < utf8.RuneSelf && (s[i] < first || s[i] >= first+26) {
		i++
	}
	return i
}

// flip changes the case of the letters of b from i on. It reports false when it meets a byte that is not ASCII.
func flip(b []byte, i int, first byte) bool {
	for ; i+8 <= len(b); i += 8 {
		w := binary.LittleEndian.Uint64(b[i:])
		if w&highBits != 0 {
			return false
		}
		binary.LittleEndian.PutUint64(b[i:], w^letters(w, first)>>2)
	}
	for ; i < len(b); i++ {
		if b[i] >= utf8.RuneSelf {
			return false
		}
		if first <= b[i] && b[i] < first+26 {
			b[i] ^= 'a' - 'A'
		}
	}
	return true
}

func appendUpper(dst []byte, s string) []byte {
	i := unchanged(s, 'a')
	at := len(dst)
	if dst = append(dst, s...); flip(dst[at:], i, 'a') {
		return dst
	}
	return appendUpperUnicode(dst[:at], s)
}

func appendLower(dst []byte, s string) []byte {
	i := unchanged(s, 'A')
	at := len(dst)
	if dst = append(dst, s...); flip(dst[at:], i, 'A') {
		return dst
	}
	return appendLowerUnicode(dst[:at], s, 0)
}

// runeCount is utf8.RuneCountInString.
func runeCount(s string) int64 {
	i := 0
	for i+8 <= len(s) && word(s, i)&highBits == 0 {
		i += 8
	}
	return int64(i + utf8.RuneCountInString(s[i:]))
}
