package format

import (
	"encoding/binary"
	"unicode/utf8"

	"github.com/streamsql/streamsql/sql/diag"
)

// needsEscape reports a quote, a backslash or a control character in s, eight bytes at a time.
func needsEscape(s string) bool {
	b := bytesOf(s)
	p := 0
	for ; p+8 <= len(b); p += 8 {
		w := binary.LittleEndian.Uint64(b[p:])
		q := w ^ (0x22 * ones)
		t := w ^ (0x5c * ones)
		if ((q-ones)&^q|(t-ones)&^t|(w-0x20*ones)&^w)&highs != 0 {
			return true
		}
	}
	for ; p < len(b); p++ {
		if c := b[p]; c == '"' || c == '\\' || c < 0x20 {
			return true
		}
	}
	return false
}

// appendJSONString appends s quoted. Only what must be escaped is.
func appendJSONString(dst []byte, s string) []byte {
	dst = append(dst, '"')
	if !needsEscape(s) {
		dst = append(dst, s...)
	} else {
		dst = appendEscaped(dst, s)
	}
	return append(dst, '"')
}

const hexDigits = "0123456789ABCDEF"

func appendEscaped(dst []byte, s string) []byte {
	start := 0
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c >= 0x20 && c != '"' && c != '\\' {
			continue
		}
		dst = append(dst, s[start:i]...)
		start = i + 1
		dst = append(dst, '\\')
		switch c {
		case '"', '\\':
			dst = append(dst, c)
		case '\b':
			dst = append(dst, 'b')
		case '\f':
			dst = append(dst, 'f')
		case '\n':
			dst = append(dst, 'n')
		case '\r':
			dst = append(dst, 'r')
		case '\t':
			dst = append(dst, 't')
		default:
			dst = append(dst, 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
		}
	}
	return append(dst, s[start:]...)
}

// appendCompact appends the checked JSON value v without the space between its tokens. Escapes that need not be are
// written as the character itself, as a parse and print would.
func appendCompact(dst, v []byte) []byte {
	for i := 0; i < len(v); {
		c := v[i]
		if space(c) {
			i++
			continue
		}
		if c != '"' {
			dst = append(dst, c)
			i++
			continue
		}
		next, plain := skipString(v, i+1)
		if plain && !needsEscape(text(v[i+1:next-1])) {
			dst = append(dst, v[i:next]...)
		} else {
			dst = appendJSONString(dst, text(appendUnescaped(nil, v[i+1:next-1])))
		}
		i = next
	}
	return dst
}

// shorten is text for an error message.
func shorten(b []byte) string {
	const most = 100
	return diag.Shorten(string(b[:min(len(b), most+utf8.UTFMax)]), most)
}
