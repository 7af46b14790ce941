package repl

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// escape makes control characters of a value visible: a line feed or tab would break a table's frame, and others could
// change what the terminal does. Those in keep stay as they are.
func escape(s, keep string) string {
	control := func(r rune) bool { return unicode.IsControl(r) && !strings.ContainsRune(keep, r) }
	i := strings.IndexFunc(s, control)
	if i < 0 {
		return s
	}
	var sb strings.Builder
	for ; i >= 0; i = strings.IndexFunc(s, control) {
		sb.WriteString(s[:i])
		r, n := utf8.DecodeRuneInString(s[i:])
		switch r {
		case '\n':
			sb.WriteString(`\n`)
		case '\r':
			sb.WriteString(`\r`)
		case '\t':
			sb.WriteString(`\t`)
		default:
			fmt.Fprintf(&sb, `\u%04x`, r)
		}
		s = s[i+n:]
	}
	sb.WriteString(s)
	return sb.String()
}

// escapeAll escapes the texts in place.
func escapeAll(texts []string, keep string) []string {
	for i, s := range texts {
		texts[i] = escape(s, keep)
	}
	return texts
}
