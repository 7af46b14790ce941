package expr

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// runeSet is a set of code points: ranges, ascending and apart once normal.
type runeSet [][2]rune

var anyRune = runeSet{{0, unicode.MaxRune}}

func (s runeSet) normal() runeSet {
	slices.SortFunc(s, func(a, b [2]rune) int { return cmp.Compare(a[0], b[0]) })
	out := s[:0]
	for _, r := range s {
		if n := len(out); n > 0 && r[0] <= out[n-1][1]+1 {
			out[n-1][1] = max(out[n-1][1], r[1])
			continue
		}
		out = append(out, r)
	}
	return out
}

func (s runeSet) negate() runeSet {
	s = slices.Clone(s).normal()
	var out runeSet
	next := rune(0)
	for _, r := range s {
		if r[0] > next {
			out = append(out, [2]rune{next, r[0] - 1})
		}
		next = r[1] + 1
	}
	if next <= unicode.MaxRune {
		out = append(out, [2]rune{next, unicode.MaxRune})
	}
	return out
}

func (s runeSet) union(o runeSet) runeSet { return append(slices.Clone(s), o...).normal() }

func (s runeSet) intersect(o runeSet) runeSet { return s.negate().union(o.negate()).negate() }

var (
	setDigit  = runeSet{{'0', '9'}}
	setWord   = runeSet{{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}}
	setSpace  = runeSet{{'\t', '\r'}, {' ', ' '}}
	setHSpace = runeSet{{'\t', '\t'}, {' ', ' '}, {0xA0, 0xA0}, {0x1680, 0x1680}, {0x180E, 0x180E}, {0x2000, 0x200A},
		{0x202F, 0x202F}, {0x205F, 0x205F}, {0x3000, 0x3000}}
	setVSpace = runeSet{{'\n', '\r'}, {0x85, 0x85}, {0x2028, 0x2029}}
)

// classEscapes are the escapes that stand for a set; an upper-case letter negates.
var classEscapes = map[rune]runeSet{'d': setDigit, 'w': setWord, 's': setSpace, 'h': setHSpace, 'v': setVSpace}

// posixSets are \p{Name} of ASCII.
var posixSets = map[string]runeSet{
	"Lower": {{'a', 'z'}}, "Upper": {{'A', 'Z'}}, "ASCII": {{0, 127}}, "Alpha": {{'A', 'Z'}, {'a', 'z'}},
	"Digit": setDigit, "Alnum": {{'0', '9'}, {'A', 'Z'}, {'a', 'z'}},
	"Punct": {{'!', '/'}, {':', '@'}, {'[', '`'}, {'{', '~'}}, "Graph": {{'!', '~'}}, "Print": {{' ', '~'}},
	"Blank": {{'\t', '\t'}, {' ', ' '}}, "Cntrl": {{0, 31}, {127, 127}},
	"XDigit": {{'0', '9'}, {'A', 'F'}, {'a', 'f'}}, "Space": setSpace,
}

// binaryProps are \p{IsName} of Unicode's binary properties, as tables whose union they are.
var binaryProps = map[string][]*unicode.RangeTable{
	"ALPHABETIC": {unicode.Letter, unicode.Nl, unicode.Other_Alphabetic}, "IDEOGRAPHIC": {unicode.Ideographic},
	"LETTER": {unicode.Letter}, "LOWERCASE": {unicode.Lower, unicode.Other_Lowercase},
	"UPPERCASE": {unicode.Upper, unicode.Other_Uppercase}, "TITLECASE": {unicode.Title},
	"WHITE_SPACE": {unicode.White_Space}, "WHITESPACE": {unicode.White_Space}, "CONTROL": {unicode.Cc},
	"PUNCTUATION": {unicode.Punct}, "HEX_DIGIT": {unicode.Hex_Digit}, "HEXDIGIT": {unicode.Hex_Digit},
	"DIGIT": {unicode.Nd}, "JOIN_CONTROL": {unicode.Join_Control}, "JOINCONTROL": {unicode.Join_Control},
	"NONCHARACTER_CODE_POINT": {unicode.Noncharacter_Code_Point}, "NONCHARACTERCODEPOINT": {unicode.Noncharacter_Code_Point},
}

func tableSet(ts ...*unicode.RangeTable) runeSet {
	var out runeSet
	add := func(lo, hi, stride rune) {
		if stride == 1 {
			out = append(out, [2]rune{lo, hi})
			return
		}
		for r := lo; r <= hi; r += stride {
			out = append(out, [2]rune{r, r})
		}
	}
	for _, t := range ts {
		for _, r := range t.R16 {
			add(rune(r.Lo), rune(r.Hi), rune(r.Stride))
		}
		for _, r := range t.R32 {
			add(rune(r.Lo), rune(r.Hi), rune(r.Stride))
		}
	}
	return out.normal()
}

// class parses a character class behind its '['.
func (p *reParser) class() (runeSet, error) {
	if p.depth++; p.depth > maxRegexDepth {
		return nil, p.unsupported("classes nested this deeply")
	}
	defer func() { p.depth-- }()
	negate := p.accept("^")
	var whole, part runeSet
	intersecting, first, seen := false, true, false
	merge := func() {
		if intersecting {
			part = whole.intersect(part)
		}
		whole, part, seen = part, nil, false
	}
	for {
		p.skipComments()
		r := p.peek()
		switch {
		case r == -1:
			return nil, p.fail("unclosed character class")
		case r == ']' && !first:
			p.pos++
			if intersecting && !seen { // [a&&] is [a]
				part = whole
			}
			merge()
			if negate {
				whole = whole.negate()
			}
			return whole, nil
		case p.accept("&&"):
			for p.accept("&") {
			}
			if intersecting && !seen {
				part = whole
			}
			merge()
			intersecting = true
		case r == '[':
			p.pos++
			set, err := p.class()
			if err != nil {
				return nil, err
			}
			part, seen = part.union(set), true
		default:
			set, err := p.classRange()
			if err != nil {
				return nil, err
			}
			part, seen = part.union(p.folded(set)), true
		}
		first = false
	}
}

// classRange parses x, x-y or an escape that stands for a set.
func (p *reParser) classRange() (runeSet, error) {
	lo, set, err := p.classItem()
	if err != nil || set != nil {
		return set, err
	}
	if p.peek() != '-' || p.pos+1 >= len(p.src) || p.src[p.pos+1] == ']' || p.src[p.pos+1] == '[' ||
		p.src[p.pos+1] == '&' && p.pos+2 < len(p.src) && p.src[p.pos+2] == '&' {
		return runeSet{{lo, lo}}, nil
	}
	p.pos++
	hi, set, err := p.classItem()
	switch {
	case err != nil:
		return nil, err
	case set != nil:
		return nil, p.fail("illegal character range")
	case hi < lo:
		return nil, p.fail("illegal character range")
	}
	return runeSet{{lo, hi}}, nil
}

func (p *reParser) classItem() (rune, runeSet, error) {
	r := p.next()
	if r != '\\' {
		return r, nil, nil
	}
	if p.peek() == 'Q' {
		return p.quotedInClass()
	}
	if set, ok, err := p.setEscape(); ok || err != nil {
		return 0, set, err
	}
	c, ok, err := p.charEscape()
	if err == nil && !ok {
		err = p.fail("illegal/unsupported escape sequence")
	}
	return c, nil, err
}

// quotedInClass is \Q..\E inside a class.
func (p *reParser) quotedInClass() (rune, runeSet, error) {
	p.pos++
	set := runeSet{}
	for p.pos < len(p.src) && !p.accept(`\E`) {
		r := p.next()
		set = append(set, [2]rune{r, r})
	}
	return 0, set.normal(), nil
}

// setEscape parses the escapes that stand for a set, behind the backslash.
func (p *reParser) setEscape() (runeSet, bool, error) {
	r := p.peek()
	if s, ok := classEscapes[unicode.ToLower(r)]; ok {
		p.pos++
		if unicode.IsUpper(r) {
			s = s.negate()
		}
		return s, true, nil
	}
	if r != 'p' && r != 'P' {
		return nil, false, nil
	}
	p.pos++
	name := string(p.next())
	if name == "{" {
		start := p.pos
		for p.peek() != '}' {
			if p.pos >= len(p.src) {
				return nil, true, p.fail("unclosed character family")
			}
			p.pos++
		}
		name = string(p.src[start:p.pos])
		p.pos++
	}
	s, err := p.property(name)
	if err == nil && r == 'P' {
		s = s.negate()
	}
	return s, true, err
}

func (p *reParser) property(name string) (runeSet, error) {
	if key, value, ok := strings.Cut(name, "="); ok {
		switch strings.ToLower(key) {
		case "script", "sc":
			return p.script(value)
		case "general_category", "gc":
			return p.category(value, name)
		case "block", "blk":
			return nil, p.unsupported("Unicode block " + value)
		}
		return nil, p.fail("unknown Unicode property {name=<%s>, value=<%s>}", key, value)
	}
	if s, ok := posixSets[name]; ok {
		return s, nil
	}
	switch {
	case strings.HasPrefix(name, "In"):
		return nil, p.unsupported("Unicode block " + name[2:])
	case strings.HasPrefix(name, "java"):
		return nil, p.unsupported("character class " + name)
	case strings.HasPrefix(name, "Is"):
		rest := name[2:]
		if t, ok := binaryProps[strings.ToUpper(rest)]; ok {
			return tableSet(t...), nil
		}
		if s, err := p.category(rest, name); err == nil {
			return s, nil
		}
		return p.script(rest)
	}
	return p.category(name, name)
}

func (p *reParser) category(name, shown string) (runeSet, error) {
	switch name {
	case "L1":
		return runeSet{{0, 255}}, nil
	case "LC":
		return tableSet(unicode.Lu, unicode.Ll, unicode.Lt), nil
	case "Cn":
		return nil, p.unsupported("category Cn")
	case "all":
		return anyRune, nil
	}
	if t, ok := unicode.Categories[name]; ok {
		return tableSet(t), nil
	}
	return nil, p.fail("unknown character property name {%s}", shown)
}

func (p *reParser) script(name string) (runeSet, error) {
	for n, t := range unicode.Scripts {
		if strings.EqualFold(n, strings.ReplaceAll(name, " ", "_")) {
			return tableSet(t), nil
		}
	}
	return nil, p.fail("unknown character script name {%s}", name)
}

// charEscape parses the escapes that stand for one code point, behind the backslash; ok = false for letters that mean
// something else or nothing.
func (p *reParser) charEscape() (rune, bool, error) {
	r := p.next()
	switch r {
	case -1:
		return 0, false, p.fail("unexpected internal error: \\ at the end")
	case 't':
		return '\t', true, nil
	case 'n':
		return '\n', true, nil
	case 'r':
		return '\r', true, nil
	case 'f':
		return '\f', true, nil
	case 'a':
		return 7, true, nil
	case 'e':
		return 27, true, nil
	case '0':
		return p.octal()
	case 'x':
		return p.hexEscape()
	case 'u':
		return p.unicodeEscape()
	case 'c':
		if p.pos >= len(p.src) {
			return 0, false, p.fail("illegal control escape sequence")
		}
		return p.next() ^ 64, true, nil
	}
	if isASCIIAlnum(r) {
		p.pos--
		return 0, false, nil
	}
	return r, true, nil
}

func (p *reParser) octal() (rune, bool, error) {
	v, n := rune(0), 0
	for ; n < 3 && p.peek() >= '0' && p.peek() <= '7' && v*8+p.peek()-'0' <= 0o377; n++ {
		v = v*8 + p.next() - '0'
	}
	if n == 0 {
		return 0, false, p.fail("illegal octal escape sequence")
	}
	return v, true, nil
}

func (p *reParser) hexDigits(n int) (rune, bool) {
	if p.pos+n > len(p.src) {
		return 0, false
	}
	v, err := strconv.ParseUint(string(p.src[p.pos:p.pos+n]), 16, 32)
	if err != nil {
		return 0, false
	}
	p.pos += n
	return rune(v), true
}

func (p *reParser) hexEscape() (rune, bool, error) {
	if !p.accept("{") {
		v, ok := p.hexDigits(2)
		if !ok {
			return 0, false, p.fail("illegal hexadecimal escape sequence")
		}
		return v, true, nil
	}
	n := 0
	for p.pos+n < len(p.src) && p.src[p.pos+n] != '}' {
		n++
	}
	if n == 0 || n > 8 {
		return 0, false, p.fail("illegal hexadecimal escape sequence")
	}
	v, ok := p.hexDigits(n)
	if !ok || v < 0 || v > unicode.MaxRune || !p.accept("}") {
		return 0, false, p.fail("illegal hexadecimal escape sequence")
	}
	return v, true, nil
}

func (p *reParser) unicodeEscape() (rune, bool, error) {
	v, ok := p.hexDigits(4)
	if !ok {
		return 0, false, p.fail("illegal Unicode escape sequence")
	}
	if v >= 0xD800 && v < 0xDC00 && p.accept(`\u`) {
		lo, ok := p.hexDigits(4)
		if !ok || lo < 0xDC00 || lo > 0xDFFF {
			return 0, false, p.unsupported("half of a surrogate pair")
		}
		return (v-0xD800)<<10 + lo - 0xDC00 + 0x10000, true, nil
	}
	if v >= 0xD800 && v <= 0xDFFF {
		return 0, false, p.unsupported("half of a surrogate pair")
	}
	return v, true, nil
}

// escape parses an escape outside classes, behind the backslash.
func (p *reParser) escape() (*reNode, error) {
	if set, ok, err := p.setEscape(); ok || err != nil {
		return &reNode{op: reSet, set: p.folded(set)}, err
	}
	if r := p.peek(); r >= '1' && r <= '9' {
		return p.backref()
	}
	c, ok, err := p.charEscape()
	switch {
	case err != nil:
		return nil, err
	case ok:
		return p.char(c), nil
	}
	switch r := p.next(); r {
	case 'b':
		if p.peek() == '{' {
			return nil, p.unsupported(`\b{g}`)
		}
		return &reNode{op: reWordEdge}, nil
	case 'B':
		return &reNode{op: reWordEdge, n: 1}, nil
	case 'A':
		return &reNode{op: reBegin}, nil
	case 'z':
		return &reNode{op: reEnd}, nil
	case 'Z':
		return &reNode{op: reDollar, unix: p.flags.unix}, nil
	case 'R':
		crlf := &reNode{op: reCat, subs: []*reNode{{op: reSet, set: runeSet{{'\r', '\r'}}}, {op: reSet, set: runeSet{{'\n', '\n'}}}}}
		return &reNode{op: reAlt, subs: []*reNode{crlf, {op: reSet, set: setVSpace}}}, nil
	case 'Q':
		return p.quoted(), nil
	case 'E': // without \Q
		return nil, p.fail("illegal/unsupported escape sequence")
	case 'k':
		if p.next() != '<' {
			return nil, p.fail(`\k is not followed by '<' for named capturing group`)
		}
		name, err := p.groupName()
		if err != nil {
			return nil, err
		}
		if p.names[name] == 0 {
			return nil, p.fail("named capturing group <%s> does not exist", name)
		}
		return &reNode{op: reBackref, n: p.names[name], fold: p.flags.fold}, nil
	case 'G', 'X', 'N':
		return nil, p.unsupported(`\` + string(r))
	}
	return nil, p.fail("illegal/unsupported escape sequence")
}

// quoted is \Q..\E: all but the last character become a unit of their own, so that a quantifier binds to the last.
func (p *reParser) quoted() *reNode {
	cat := &reNode{op: reCat}
	for p.pos < len(p.src) && !p.accept(`\E`) {
		cat.subs = append(cat.subs, p.char(p.next()))
	}
	if r := p.peek(); len(cat.subs) > 1 && (r == '*' || r == '+' || r == '?' || r == '{') {
		last := len(cat.subs) - 1
		if q, err := p.quantifiers(cat.subs[last]); err == nil {
			cat.subs[last] = q
		}
	}
	return cat
}

func (p *reParser) backref() (*reNode, error) {
	n := int(p.next() - '0')
	if n > p.groups {
		return nil, p.unsupported("a reference to a group that is not closed or does not exist")
	}
	for p.peek() >= '0' && p.peek() <= '9' && n*10+int(p.peek()-'0') <= p.groups {
		n = n*10 + int(p.next()-'0')
	}
	return &reNode{op: reBackref, n: n, fold: p.flags.fold}, nil
}
