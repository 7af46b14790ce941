package expr

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"unicode"
	"unicode/utf8"
)

// A regular expression in Java's syntax (java.util.regex.Pattern of JDK 19 and later without flags) as a tree. The tree
// is printed in the syntax of an engine by fn_regex.go. What Java rejects is errSyntax; what Java has and the engines
// cannot do is errUnsupportedRegex.

// errUnsupportedRegex marks constructs that Java has and streamsql does not.
var errUnsupportedRegex = errors.New("not supported")

type reOp uint8

const (
	reEmpty     reOp = iota
	reSet            // one code point of set
	reCat            // subs one after the other
	reAlt            // one of subs
	reRepeat         // subs[0] from lo to hi times (-1: any), mode greedy, lazy or possessive
	reCapture        // group number n
	reAtomic         // (?>x)
	reLook           // lookaround: text is its opening
	reBackref        // \n
	reBegin          // \A
	reEnd            // \z
	reDollar         // $ and \Z: the end, or before a last line terminator
	reLineBegin      // ^ of multi-line mode
	reLineEnd        // $ of multi-line mode
	reWordEdge       // \b; n = 1 for \B
)

type reNode struct {
	op     reOp
	set    runeSet
	subs   []*reNode
	lo, hi int
	mode   byte // '?' lazy, '+' possessive
	n      int
	text   string
	unix   bool // (?d): \n is the only line terminator
	fold   bool // a back reference that ignores case
}

type reFlags struct{ fold, unicode, dotAll, multi, comments, unix bool }

type reParser struct {
	src    []rune
	pos    int
	flags  reFlags
	groups int
	names  map[string]int
	depth  int
}

// parseJavaRegex parses src. groups is the number of capturing groups.
func parseJavaRegex(src string) (n *reNode, groups int, err error) {
	p := &reParser{src: []rune(src), names: map[string]int{}}
	n, err = p.alternatives()
	if err == nil && p.pos < len(p.src) {
		err = p.fail("unmatched closing ')'")
	}
	return n, p.groups, err
}

func (p *reParser) fail(format string, args ...any) error {
	return fmt.Errorf("%s at position %d", fmt.Sprintf(format, args...), p.pos+1)
}

func (p *reParser) unsupported(what string) error {
	return fmt.Errorf("%s at position %d: %w", what, p.pos+1, errUnsupportedRegex)
}

func (p *reParser) peek() rune {
	if p.pos < len(p.src) {
		return p.src[p.pos]
	}
	return -1
}

func (p *reParser) next() rune {
	r := p.peek()
	p.pos++
	return r
}

func (p *reParser) accept(s string) bool {
	n := utf8.RuneCountInString(s)
	if p.pos+n <= len(p.src) && string(p.src[p.pos:p.pos+n]) == s {
		p.pos += n
		return true
	}
	return false
}

// skipComments passes over what (?x) makes white space.
func (p *reParser) skipComments() {
	for p.flags.comments && p.pos < len(p.src) {
		switch r := p.src[p.pos]; {
		case r == ' ' || r >= '\t' && r <= '\r':
			p.pos++
		case r == '#':
			for p.pos < len(p.src) && p.src[p.pos] != '\n' {
				p.pos++
			}
		default:
			return
		}
	}
}

const maxRegexDepth = 200

func (p *reParser) alternatives() (*reNode, error) {
	if p.depth++; p.depth > maxRegexDepth {
		return nil, p.unsupported("groups nested this deeply")
	}
	defer func() { p.depth-- }()
	alt := &reNode{op: reAlt}
	for {
		n, err := p.sequence()
		if err != nil {
			return nil, err
		}
		alt.subs = append(alt.subs, n)
		if p.peek() != '|' {
			break
		}
		p.pos++
	}
	if len(alt.subs) == 1 {
		return alt.subs[0], nil
	}
	return alt, nil
}

func (p *reParser) sequence() (*reNode, error) {
	cat := &reNode{op: reCat}
	for {
		p.skipComments()
		r := p.peek()
		if r == -1 || r == '|' || r == ')' {
			return cat, nil
		}
		n, err := p.atom()
		if err != nil {
			return nil, err
		}
		if n == nil {
			continue
		}
		if n, err = p.quantifiers(n); err != nil {
			return nil, err
		}
		cat.subs = append(cat.subs, n)
	}
}

func (p *reParser) quantifiers(n *reNode) (*reNode, error) {
	p.skipComments()
	lo, hi := 0, -1
	switch p.peek() {
	case '*':
	case '+':
		lo = 1
	case '?':
		hi = 1
	case '{':
		return p.counted(n)
	default:
		return n, nil
	}
	p.pos++
	return p.mode(&reNode{op: reRepeat, subs: []*reNode{n}, lo: lo, hi: hi})
}

func (p *reParser) counted(n *reNode) (*reNode, error) {
	p.pos++
	lo, ok := p.number()
	if !ok {
		return nil, p.fail("illegal repetition")
	}
	hi := lo
	if p.peek() == ',' {
		p.pos++
		if hi, ok = p.number(); !ok {
			hi = -1
		}
	}
	if p.next() != '}' {
		return nil, p.fail("unclosed counted closure")
	}
	if hi >= 0 && hi < lo {
		return nil, p.fail("illegal repetition range")
	}
	return p.mode(&reNode{op: reRepeat, subs: []*reNode{n}, lo: lo, hi: hi})
}

func (p *reParser) number() (int, bool) {
	start := p.pos
	for p.peek() >= '0' && p.peek() <= '9' {
		p.pos++
	}
	n, err := strconv.ParseInt(string(p.src[start:p.pos]), 10, 31)
	return int(n), err == nil
}

func (p *reParser) mode(n *reNode) (*reNode, error) {
	switch p.peek() {
	case '?', '+':
		n.mode = byte(p.next())
	}
	p.skipComments()
	switch p.peek() {
	case '*', '+', '?':
		return nil, p.fail("dangling meta character '%c'", p.peek())
	case '{':
		return p.counted(n)
	}
	return n, nil
}

// atom parses one item; nil for inline flags, which are none.
func (p *reParser) atom() (*reNode, error) {
	switch r := p.next(); r {
	case '(':
		return p.group()
	case '[':
		set, err := p.class()
		return &reNode{op: reSet, set: set}, err
	case '.':
		return p.dot(), nil
	case '^':
		if p.flags.multi {
			return &reNode{op: reLineBegin, unix: p.flags.unix}, nil
		}
		return &reNode{op: reBegin}, nil
	case '$':
		if p.flags.multi {
			return &reNode{op: reLineEnd, unix: p.flags.unix}, nil
		}
		return &reNode{op: reDollar, unix: p.flags.unix}, nil
	case '\\':
		return p.escape()
	case '*', '+', '?':
		p.pos--
		return nil, p.fail("dangling meta character '%c'", r)
	case '{':
		p.pos--
		return nil, p.fail("illegal repetition")
	default:
		return p.char(r), nil
	}
}

func (p *reParser) char(r rune) *reNode { return &reNode{op: reSet, set: p.folded(runeSet{{r, r}})} }

var lineEnds = runeSet{{'\n', '\n'}, {'\r', '\r'}, {0x85, 0x85}, {0x2028, 0x2029}}

func (p *reParser) dot() *reNode {
	switch {
	case p.flags.dotAll:
		return &reNode{op: reSet, set: anyRune}
	case p.flags.unix:
		return &reNode{op: reSet, set: runeSet{{'\n', '\n'}}.negate()}
	}
	return &reNode{op: reSet, set: lineEnds.negate()}
}

// folded adds the other case when (?i) is on: of ASCII letters, or of all with (?u).
func (p *reParser) folded(s runeSet) runeSet {
	if !p.flags.fold {
		return s
	}
	out := slices.Clone(s)
	for _, r := range s {
		if !p.flags.unicode {
			for c := max(r[0], 'A'); c <= min(r[1], 'z'); c++ {
				if c >= 'a' {
					out = append(out, [2]rune{c - 32, c - 32})
				} else if c <= 'Z' {
					out = append(out, [2]rune{c + 32, c + 32})
				}
			}
			continue
		}
		for c := r[0]; c <= min(r[1], 0x1E943); c++ { // the last letter that has a case
			for f := unicode.SimpleFold(c); f != c; f = unicode.SimpleFold(f) {
				out = append(out, [2]rune{f, f})
			}
		}
	}
	return out.normal()
}

func (p *reParser) group() (*reNode, error) {
	saved := p.flags
	if p.peek() != '?' {
		p.groups++
		return p.closeGroup(&reNode{op: reCapture, n: p.groups}, saved)
	}
	p.pos++
	switch {
	case p.accept(":"):
		return p.closeGroup(&reNode{op: reCat}, saved)
	case p.accept(">"):
		return p.closeGroup(&reNode{op: reAtomic}, saved)
	case p.accept("="):
		return p.closeGroup(&reNode{op: reLook, text: "(?="}, saved)
	case p.accept("!"):
		return p.closeGroup(&reNode{op: reLook, text: "(?!"}, saved)
	case p.accept("<="):
		return p.lookbehind("(?<=", saved)
	case p.accept("<!"):
		return p.lookbehind("(?<!", saved)
	case p.accept("<"):
		name, err := p.groupName()
		if err != nil {
			return nil, err
		}
		if p.names[name] != 0 {
			return nil, p.fail("named capturing group <%s> is already defined", name)
		}
		p.groups++
		p.names[name] = p.groups
		return p.closeGroup(&reNode{op: reCapture, n: p.groups}, saved)
	}
	return p.inlineFlags(saved)
}

func (p *reParser) closeGroup(n *reNode, saved reFlags) (*reNode, error) {
	sub, err := p.alternatives()
	if err != nil {
		return nil, err
	}
	if p.next() != ')' {
		return nil, p.fail("unclosed group")
	}
	p.flags = saved
	n.subs = []*reNode{sub}
	return n, nil
}

func (p *reParser) lookbehind(open string, saved reFlags) (*reNode, error) {
	n, err := p.closeGroup(&reNode{op: reLook, text: open}, saved)
	if err == nil {
		if _, hi := n.subs[0].width(); hi < 0 {
			err = p.fail("look-behind group does not have an obvious maximum length")
		}
	}
	return n, err
}

func (p *reParser) groupName() (string, error) {
	start := p.pos
	for isASCIIAlnum(p.peek()) {
		p.pos++
	}
	name := string(p.src[start:p.pos])
	if name == "" || name[0] <= '9' || p.next() != '>' {
		return "", p.fail("named capturing group is missing trailing '>'")
	}
	return name, nil
}

func isASCIIAlnum(r rune) bool {
	return r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
}

// inlineFlags parses (?flags) and (?flags:x).
func (p *reParser) inlineFlags(saved reFlags) (*reNode, error) {
	on := true
	for {
		switch r := p.next(); r {
		case 'i':
			p.flags.fold = on
		case 'u':
			p.flags.unicode = on
		case 's':
			p.flags.dotAll = on
		case 'm':
			p.flags.multi = on
		case 'x':
			p.flags.comments = on
		case 'd':
			p.flags.unix = on
		case 'U', 'c':
			return nil, p.unsupported("flag " + string(r))
		case '-':
			if !on {
				return nil, p.fail("unknown inline modifier")
			}
			on = false
		case ')':
			return nil, nil // holds to the end of the enclosing group, whose closeGroup restores the flags
		case ':':
			return p.closeGroup(&reNode{op: reCat}, saved)
		default:
			return nil, p.fail("unknown inline modifier")
		}
	}
}

// width is the least and greatest number of code points n matches; -1 for no bound.
func (n *reNode) width() (lo, hi int) {
	switch n.op {
	case reSet:
		return 1, 1
	case reBackref:
		return 0, -1
	case reCat, reCapture, reAtomic:
		for _, s := range n.subs {
			l, h := s.width()
			lo += l
			hi = addWidth(hi, h)
		}
	case reAlt:
		lo, hi = n.subs[0].width()
		for _, s := range n.subs[1:] {
			l, h := s.width()
			lo = min(lo, l)
			if hi >= 0 && (h < 0 || h > hi) {
				hi = h
			}
		}
	case reRepeat:
		l, h := n.subs[0].width()
		lo = min(l*min(n.lo, 1<<20), 1<<30)
		switch {
		case h == 0:
			hi = 0
		case n.hi < 0 || h < 0:
			hi = -1
		default:
			hi = min(h*min(n.hi, 1<<20), 1<<30)
		}
	}
	return min(lo, 1<<30), hi
}

func addWidth(a, b int) int {
	if a < 0 || b < 0 {
		return -1
	}
	return min(a+b, 1<<30)
}
