package expr

import (
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// jsonDoc is a parsed JSON text: nodes in one slice that is reused from row to row, so that reading a document allocates
// nothing once the slice has grown. Strings without escapes alias the text.
type jsonDoc struct {
	nodes []jsonNode
	order []int32 // the members of the objects being written, sorted; a stack
	depth int
}

type jsonKind uint8

const (
	jsonNull jsonKind = iota
	jsonBool
	jsonNumber
	jsonString
	jsonArray
	jsonObject
)

// jsonNode is a value. Members of arrays and objects are a list: first, then next of each; -1 ends it.
type jsonNode struct {
	kind        jsonKind
	text        string // true, false, a number as written, or a string without escapes
	key         string // of a member of an object
	first, next int32
	count       int32
}

const maxJSONDepth = 1000

// parse reads the value at the front of s; as Jackson, what follows it is ignored, except directly behind a number or a
// word. ok is false for anything else than JSON.
func (d *jsonDoc) parse(s string) (root int32, ok bool) {
	d.nodes, d.depth = d.nodes[:0], 0
	root, rest, ok := d.value(skipJSONSpace(s))
	if !ok {
		return 0, false
	}
	if k := d.nodes[root].kind; k <= jsonNumber && rest != "" && strings.IndexByte(" \t\r\n", rest[0]) < 0 {
		return 0, false
	}
	return root, true
}

func skipJSONSpace(s string) string {
	for s != "" && (s[0] == ' ' || s[0] == '\n' || s[0] == '\t' || s[0] == '\r') {
		s = s[1:]
	}
	return s
}

func (d *jsonDoc) add(n jsonNode) int32 {
	n.next, n.first = -1, -1
	d.nodes = append(d.nodes, n)
	return int32(len(d.nodes) - 1)
}

func (d *jsonDoc) value(s string) (at int32, rest string, ok bool) {
	if s == "" {
		return 0, s, false
	}
	switch s[0] {
	case '{':
		return d.members(s, jsonObject, '}')
	case '[':
		return d.members(s, jsonArray, ']')
	case '"':
		text, rest, ok := d.str(s)
		return d.add(jsonNode{kind: jsonString, text: text}), rest, ok
	}
	for _, w := range [...]string{"null", "true", "false"} {
		if strings.HasPrefix(s, w) {
			kind := jsonBool
			if w == "null" {
				kind = jsonNull
			}
			return d.add(jsonNode{kind: kind, text: w}), s[len(w):], true
		}
	}
	n := jsonNumberLen(s)
	return d.add(jsonNode{kind: jsonNumber, text: s[:n]}), s[n:], n > 0
}

func (d *jsonDoc) members(s string, kind jsonKind, end byte) (at int32, rest string, ok bool) {
	if d.depth++; d.depth > maxJSONDepth {
		return 0, s, false
	}
	defer func() { d.depth-- }()
	at = d.add(jsonNode{kind: kind})
	s = skipJSONSpace(s[1:])
	if s != "" && s[0] == end {
		return at, s[1:], true
	}
	last := int32(-1)
	for {
		key := ""
		if kind == jsonObject {
			if s == "" || s[0] != '"' {
				return at, s, false
			}
			if key, s, ok = d.str(s); !ok {
				return at, s, false
			}
			s = skipJSONSpace(s)
			if s == "" || s[0] != ':' {
				return at, s, false
			}
			s = skipJSONSpace(s[1:])
		}
		m, r, ok := d.value(s)
		if !ok {
			return at, s, false
		}
		d.nodes[m].key = key
		d.link(at, last, m)
		last, s = m, skipJSONSpace(r)
		switch {
		case s == "":
			return at, s, false
		case s[0] == end:
			return at, s[1:], true
		case s[0] != ',':
			return at, s, false
		}
		s = skipJSONSpace(s[1:])
	}
}

// link makes m the member behind last of at.
func (d *jsonDoc) link(at, last, m int32) {
	if last < 0 {
		d.nodes[at].first = m
	} else {
		d.nodes[last].next = m
	}
	d.nodes[at].count++
}

// str reads a string literal at the front of s.
func (d *jsonDoc) str(s string) (text, rest string, ok bool) {
	for i := 1; i < len(s); i++ {
		switch c := s[i]; {
		case c == '"':
			return s[1:i], s[i+1:], true
		case c < 0x20:
			return "", s, false
		case c == '\\':
			return d.escaped(s, i)
		}
	}
	return "", s, false
}

// escaped is str from the first escape at s[i] on.
func (d *jsonDoc) escaped(s string, i int) (text, rest string, ok bool) {
	b := make([]byte, 0, len(s[:i])+16)
	b = append(b, s[1:i]...)
	for i < len(s) {
		c := s[i]
		switch {
		case c == '"':
			return string(b), s[i+1:], true
		case c < 0x20:
			return "", s, false
		case c != '\\':
			b = append(b, c)
			i++
			continue
		}
		out, n := unescapeJSON(b, s[i:])
		if n == 0 {
			return "", s, false
		}
		b, i = out, i+n
	}
	return "", s, false
}

// unescapeJSON appends what the escape at the front of s stands for; n is its length, 0 if it is none.
func unescapeJSON(dst []byte, s string) (_ []byte, n int) {
	if len(s) < 2 {
		return dst, 0
	}
	if i := strings.IndexByte(`"\/bfnrt`, s[1]); i >= 0 {
		return append(dst, "\"\\/\b\f\n\r\t"[i]), 2
	}
	u, ok := unicodeUnit(s)
	if !ok {
		return dst, 0
	}
	if utf16.IsSurrogate(rune(u)) {
		if lo, ok := unicodeUnit(s[6:]); ok {
			if r := utf16.DecodeRune(rune(u), rune(lo)); r != utf8.RuneError {
				return utf8.AppendRune(dst, r), 12
			}
		}
		return utf8.AppendRune(dst, utf8.RuneError), 6
	}
	return utf8.AppendRune(dst, rune(u)), 6
}

// unicodeUnit reads \uXXXX.
func unicodeUnit(s string) (uint16, bool) {
	if len(s) < 6 || s[0] != '\\' || s[1] != 'u' {
		return 0, false
	}
	v, err := strconv.ParseUint(s[2:6], 16, 16)
	return uint16(v), err == nil && s[2] != '+' && s[2] != '-'
}

// jsonNumberLen is the length of the number at the front of s, 0 if there is none.
func jsonNumberLen(s string) int {
	i := 0
	run := func() int {
		from := i
		for i < len(s) && s[i] >= '0' && s[i] <= '9' {
			i++
		}
		return i - from
	}
	if strings.HasPrefix(s, "-") {
		i++
	}
	start := i
	if n := run(); n == 0 || n > 1 && s[start] == '0' {
		return 0
	}
	if i < len(s) && s[i] == '.' {
		i++
		if run() == 0 {
			return 0
		}
	}
	if i < len(s) && (s[i] == 'e' || s[i] == 'E') {
		i++
		if i < len(s) && (s[i] == '+' || s[i] == '-') {
			i++
		}
		if run() == 0 {
			return 0
		}
	}
	return i
}

// member is the last member of object at with the key, -1 if there is none.
func (d *jsonDoc) member(at int32, key string) int32 {
	found := int32(-1)
	for m := d.nodes[at].first; m >= 0; m = d.nodes[m].next {
		if d.nodes[m].key == key {
			found = m
		}
	}
	return found
}

// append writes node at compactly, with the keys of objects in order.
func (d *jsonDoc) append(dst []byte, at int32) []byte { return d.appendWith(dst, at, false) }

// appendWith is append that can leave numbers as they are written.
func (d *jsonDoc) appendWith(dst []byte, at int32, plain bool) []byte {
	n := &d.nodes[at]
	switch n.kind {
	case jsonNumber:
		if plain {
			return append(dst, n.text...)
		}
		return appendJSONNumber(dst, n.text)
	case jsonString:
		return appendJSONString(dst, n.text)
	case jsonArray:
		dst = append(dst, '[')
		for m := n.first; m >= 0; m = d.nodes[m].next {
			if m != n.first {
				dst = append(dst, ',')
			}
			dst = d.appendWith(dst, m, plain)
		}
		return append(dst, ']')
	case jsonObject:
		return d.appendObject(dst, at, plain)
	}
	return append(dst, n.text...)
}

func (d *jsonDoc) appendObject(dst []byte, at int32, plain bool) []byte {
	from := len(d.order)
	for m := d.nodes[at].first; m >= 0; m = d.nodes[m].next {
		d.order = append(d.order, m)
	}
	to := len(d.order)
	slices.SortStableFunc(d.order[from:], func(a, b int32) int { return strings.Compare(d.nodes[a].key, d.nodes[b].key) })
	dst = append(dst, '{')
	first := true
	for i := from; i < to; i++ {
		m := d.order[i]
		if i+1 < to && d.nodes[d.order[i+1]].key == d.nodes[m].key {
			continue // the last of equal keys counts
		}
		if !first {
			dst = append(dst, ',')
		}
		first = false
		dst = append(appendJSONString(dst, d.nodes[m].key), ':')
		dst = d.appendWith(dst, m, plain)
	}
	d.order = d.order[:from]
	return append(dst, '}')
}

// appendJSONString writes a string literal as Jackson does.
func appendJSONString(dst []byte, s string) []byte {
	dst = append(dst, '"')
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch {
		case c == '"' || c == '\\':
			dst = append(dst, '\\', c)
		case c >= 0x20:
			dst = append(dst, c)
		default:
			if j := strings.IndexByte("\b\f\n\r\t", c); j >= 0 {
				dst = append(dst, '\\', "bfnrt"[j])
			} else {
				dst = append(dst, '\\', 'u', '0', '0', upperHex[c>>4], upperHex[c&15])
			}
		}
	}
	return append(dst, '"')
}

// appendJSONNumber writes integers as they are and other numbers as BigDecimal.toString does (1e2 is 1E+2).
func appendJSONNumber(dst []byte, s string) []byte {
	mantissa, expText, hasExp := s, "", false
	if i := strings.IndexAny(s, "eE"); i >= 0 {
		mantissa, expText, hasExp = s[:i], s[i+1:], true
	}
	whole, frac, hasPoint := strings.Cut(mantissa, ".")
	if !hasExp && !hasPoint {
		if s == "-0" {
			s = "0"
		}
		return append(dst, s...)
	}
	exp, err := strconv.Atoi(expText)
	if hasExp && (err != nil || exp > 1<<30 || exp < -1<<30) {
		return append(dst, s...)
	}
	neg := strings.HasPrefix(whole, "-")
	digs := strings.TrimLeft(strings.TrimPrefix(whole, "-")+frac, "0")
	if digs == "" {
		digs, neg = "0", false
	}
	if neg {
		dst = append(dst, '-')
	}
	scale := len(frac) - exp
	adjusted := len(digs) - 1 - scale
	if scale >= 0 && adjusted >= -6 {
		if scale == 0 {
			return append(dst, digs...)
		}
		if pad := scale - len(digs) + 1; pad > 0 {
			digs = strings.Repeat("0", pad) + digs
		}
		dst = append(append(dst, digs[:len(digs)-scale]...), '.')
		return append(dst, digs[len(digs)-scale:]...)
	}
	dst = append(dst, digs[0])
	if len(digs) > 1 {
		dst = append(append(dst, '.'), digs[1:]...)
	}
	if adjusted == 0 {
		return dst
	}
	dst = append(dst, 'E')
	if adjusted > 0 {
		dst = append(dst, '+')
	}
	return strconv.AppendInt(dst, int64(adjusted), 10)
}
