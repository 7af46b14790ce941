package expr

import (
	"errors"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/dlclark/regexp2/v2"

	"github.com/streamsql/streamsql/sql/diag"
)

// regex is a compiled Java pattern. Patterns without look-around, back references, possessive quantifiers and the like
// run on Go's regexp in linear time, others on a backtracking engine with a time limit. A pattern with $ has both: the
// linear one serves texts that do not end in a line terminator, where $ is the end.
type regex struct {
	groups int
	linear *regexp.Regexp
	back   *regexp2.Regexp
	dollar bool
	empty  bool           // may match the empty string
	search *literalSearch // of linear
	direct *direct        // in place of linear, where it can

	runes   []rune
	offsets []int
	loc     []int
}

// matchTimeout bounds the search for one match of the backtracking engine.
const matchTimeout = time.Second

// maxBacktrack bounds its stack.
const maxBacktrack = 1 << 20

// compileRegex compiles a pattern. errUnsupportedRegex is in the error if Java accepts the pattern and streamsql cannot.
func compileRegex(src string) (*regex, error) {
	tree, groups, err := parseJavaRegex(src)
	if err != nil {
		return nil, err
	}
	w := reWriter{}
	w.inspect(tree, false)
	lo, _ := tree.width()
	re := &regex{groups: groups, dollar: w.dollar, empty: lo == 0}
	if !w.backtrack {
		w.linear = true
		w.write(tree)
		// Go refuses some large repetitions; the other engine takes them.
		if re.linear, _ = regexp.Compile("(?s:" + w.out.String() + ")"); re.linear != nil {
			re.search, re.direct = newLiteralSearch(tree), newDirect(tree)
			re.loc = make([]int, 2*(groups+1))
		}
		w.linear = false
		w.out.Reset()
	}
	if re.linear == nil || w.dollar || re.empty {
		w.write(tree)
		re.back, err = regexp2.Compile(w.out.String(), regexp2.OptionMaintainCaptureOrder(),
			regexp2.OptionMaxBacktrackingStackSize(maxBacktrack))
		if err != nil {
			return nil, errors.Join(errUnsupportedRegex, err)
		}
		re.back.MatchTimeout = matchTimeout
	}
	return re, nil
}

// reWriter prints a tree in the syntax of one of the engines.
type reWriter struct {
	out       strings.Builder
	linear    bool
	cut       bool // the text is the rest of a longer one
	backtrack bool // only the backtracking engine can run the pattern
	dollar    bool
}

// inspect finds what Go's regexp does not have, or does otherwise. loop says that n is repeated.
func (w *reWriter) inspect(n *reNode, loop bool) {
	switch n.op {
	case reAtomic, reLook, reBackref, reLineBegin, reLineEnd:
		w.backtrack = true
	case reDollar:
		w.dollar = true
		w.backtrack = w.backtrack || loop
	case reRepeat:
		lo, _ := n.subs[0].width()
		// Loops over the empty string stop at different points in different engines.
		if n.mode == '+' || n.lo > 1000 || n.hi > 1000 || lo == 0 && n.hi != 1 {
			w.backtrack = true
		}
		loop = true
	}
	for _, s := range n.subs {
		w.inspect(s, loop)
	}
}

func (w *reWriter) write(n *reNode) {
	s := w.out.WriteString
	switch n.op {
	case reSet:
		w.set(n.set)
	case reCat:
		for _, x := range n.subs {
			w.item(x)
		}
	case reAlt:
		s("(?:")
		for i, x := range n.subs {
			if i > 0 {
				s("|")
			}
			w.write(x)
		}
		s(")")
	case reRepeat:
		w.repeat(n)
	case reCapture:
		s("(")
		w.write(n.subs[0])
		s(")")
	case reAtomic:
		s("(?>")
		w.write(n.subs[0])
		s(")")
	case reLook:
		s(n.text)
		w.write(n.subs[0])
		s(")")
	case reBackref:
		if n.fold {
			s(`(?i:\` + strconv.Itoa(n.n) + ")")
		} else {
			s(`(?:\` + strconv.Itoa(n.n) + ")")
		}
	case reBegin:
		if w.cut {
			w.set(nil)
			return
		}
		s(`\A`)
	case reEnd:
		s(`\z`)
	case reDollar, reLineBegin, reLineEnd:
		w.line(n)
	case reWordEdge:
		w.wordEdge(n.n == 1)
	}
}

// item writes n as a unit of a sequence.
func (w *reWriter) item(n *reNode) {
	if n.op == reCat {
		w.out.WriteString("(?:")
		w.write(n)
		w.out.WriteString(")")
		return
	}
	w.write(n)
}

func (w *reWriter) repeat(n *reNode) {
	s := w.out.WriteString
	if n.mode == '+' {
		s("(?>")
	}
	s("(?:")
	w.write(n.subs[0])
	s(")")
	switch {
	case n.lo == 0 && n.hi == -1:
		s("*")
	case n.lo == 1 && n.hi == -1:
		s("+")
	case n.lo == 0 && n.hi == 1:
		s("?")
	case n.hi == -1:
		s("{" + strconv.Itoa(n.lo) + ",}")
	default:
		s("{" + strconv.Itoa(n.lo) + "," + strconv.Itoa(n.hi) + "}")
	}
	switch n.mode {
	case '?':
		s("?")
	case '+':
		s(")")
	}
}

const (
	javaDollar   = `(?:(?=\r\n\z)|(?<!\r)(?=\n\z)|(?=[\r\u0085\u2028\u2029]\z)|\z)`
	javaLineEnd  = `(?:(?<!\r)(?=\n)|(?=[\r\u0085\u2028\u2029])|\z)`
	javaLineHead = `(?!\z)(?:\A|(?<=[\n\u0085\u2028\u2029])|(?<=\r)(?!\n))`
	javaEdge     = `(?:(?<=[0-9A-Za-z_])(?![0-9A-Za-z_])|(?<![0-9A-Za-z_])(?=[0-9A-Za-z_]))`
	javaNoEdge   = `(?:(?<=[0-9A-Za-z_])(?=[0-9A-Za-z_])|(?<![0-9A-Za-z_])(?![0-9A-Za-z_]))`
)

func (w *reWriter) line(n *reNode) {
	text := map[reOp][2]string{
		reDollar:    {javaDollar, `(?:(?=\n\z)|\z)`},
		reLineBegin: {javaLineHead, `(?!\z)(?:\A|(?<=\n))`},
		reLineEnd:   {javaLineEnd, `(?:(?=\n)|\z)`},
	}[n.op]
	switch {
	case w.linear: // reDollar only, for texts without a line terminator at the end
		w.out.WriteString(`\z`)
	case n.unix:
		w.out.WriteString(text[1])
	default:
		w.out.WriteString(text[0])
	}
}

func (w *reWriter) wordEdge(not bool) {
	switch {
	case w.linear && not:
		w.out.WriteString(`\B`)
	case w.linear:
		w.out.WriteString(`\b`)
	case not:
		w.out.WriteString(javaNoEdge)
	default:
		w.out.WriteString(javaEdge)
	}
}

func (w *reWriter) set(set runeSet) {
	switch {
	case len(set) == 0:
		w.out.WriteString(`[^\x00-` + string(rune(utf8.MaxRune)) + `]`)
		return
	case len(set) == 1 && set[0][0] == set[0][1]:
		w.rune(set[0][0])
		return
	}
	w.out.WriteByte('[')
	for _, r := range set {
		w.rune(r[0])
		if r[1] > r[0] {
			w.out.WriteByte('-')
			w.rune(r[1])
		}
	}
	w.out.WriteByte(']')
}

// rune writes one code point so that both engines take it for itself, inside and outside classes.
func (w *reWriter) rune(r rune) {
	switch {
	case r < 0x20 || r == 0x7F:
		w.out.WriteString(`\x`)
		w.out.WriteByte(upperHex[r>>4])
		w.out.WriteByte(upperHex[r&15])
	case r >= 0xD800 && r <= 0xDFFF: // no code point of a string; keeps a range in order
		w.out.WriteRune(0xE000)
	case r < utf8.RuneSelf && !isASCIIAlnum(r) && r != ' ' && r != '_':
		w.out.WriteByte('\\')
		w.out.WriteRune(r)
	default:
		w.out.WriteRune(r)
	}
}

// find is the first match at or behind byte from: byte offsets of the whole match and every group, -1 for groups that
// took no part; nil for no match. The slice is good until the next call.
func (re *regex) find(s string, from int) ([]int, *diag.Error) {
	if from > 0 || !re.isLinear(s) {
		return re.findBack(s, from)
	}
	if re.direct != nil {
		re.loc = re.loc[:2*(re.groups+1)]
		if found, ok := re.direct.find(s, 0, re.loc); found {
			return re.loc, nil
		} else if ok {
			return nil, nil
		}
	}
	if re.search != nil {
		if loc, ok := re.search.find(s); ok {
			return loc, nil
		}
	}
	return re.linear.FindStringSubmatchIndex(s), nil
}

// isLinear reports that the linear engine, and what stands for it, may search s.
func (re *regex) isLinear(s string) bool { return re.linear != nil && !(re.dollar && endsLine(s)) }

func (re *regex) test(s string) (bool, *diag.Error) {
	if re.direct != nil || !re.isLinear(s) {
		loc, err := re.find(s, 0)
		return loc != nil, err
	}
	if re.search != nil {
		if loc, ok := re.search.find(s); ok {
			return loc != nil, nil
		}
	}
	return re.linear.MatchString(s), nil
}

func endsLine(s string) bool {
	r, _ := utf8.DecodeLastRuneInString(s)
	return r == '\n' || r == '\r' || r == 0x85 || r == 0x2028 || r == 0x2029
}

// all calls f with every match, as a loop over Matcher.find does.
func (re *regex) all(s string, f func(loc []int)) *diag.Error {
	if re.isLinear(s) && !re.empty {
		done := 0
		if re.direct != nil {
			var ok bool
			if done, ok = re.allDirect(s, f); ok {
				return nil
			}
		}
		for _, loc := range re.linear.FindAllStringSubmatchIndex(s, -1)[done:] {
			f(loc)
		}
		return nil
	}
	re.decode(s)
	for at := 0; at < len(re.runes)+1; {
		loc, end, err := re.findRunes(at)
		if loc == nil || err != nil {
			return err
		}
		f(loc)
		if at = end; loc[0] == loc[1] {
			at++
		}
	}
	return nil
}

// allDirect is all by re.direct; ok is false when it gave up behind done matches.
func (re *regex) allDirect(s string, f func(loc []int)) (done int, ok bool) {
	re.loc = re.loc[:2*(re.groups+1)]
	for at := 0; ; done++ {
		found, ok := re.direct.find(s, at, re.loc)
		if !found {
			return done, ok
		}
		at = re.loc[1]
		f(re.loc)
	}
}

func (re *regex) findBack(s string, from int) ([]int, *diag.Error) {
	re.decode(s)
	at := 0
	for re.offsets[at] < from {
		at++
	}
	loc, _, err := re.findRunes(at)
	return loc, err
}

func (re *regex) decode(s string) {
	re.runes, re.offsets = re.runes[:0], re.offsets[:0]
	for i, r := range s {
		re.runes = append(re.runes, r)
		re.offsets = append(re.offsets, i)
	}
	re.offsets = append(re.offsets, len(s))
}

// findRunes searches re.runes from code point at; end is the code point behind the match.
func (re *regex) findRunes(at int) (loc []int, end int, _ *diag.Error) {
	m, err := re.back.FindRunesMatchStartingAt(re.runes, at)
	if err != nil {
		return nil, 0, diag.New(diag.Data, diag.Pos{}, "the regular expression took too long on a text of %d characters", len(re.runes)).
			WithDetail("%s", err).WithHint("rewrite the pattern without nested repetitions such as (a+)+, or bound them")
	}
	if m == nil {
		return nil, 0, nil
	}
	re.loc = re.loc[:0]
	for i := 0; i <= re.groups; i++ {
		g := m.GroupByNumber(i)
		if g == nil || len(g.Captures) == 0 {
			re.loc = append(re.loc, -1, -1)
			continue
		}
		re.loc = append(re.loc, re.offsets[g.RuneIndex], re.offsets[g.RuneIndex+g.RuneLength])
		if i == 0 {
			end = g.RuneIndex + g.RuneLength
		}
	}
	return re.loc, end, nil
}

// regexCache holds the patterns of one call in one Program.
type regexCache struct {
	last string
	re   *regex
	err  error
	all  map[string]cachedRegex
}

type cachedRegex struct {
	re  *regex
	err error
}

const maxCachedRegex = 500

func (c *regexCache) get(src string) (*regex, error) {
	if c.all != nil && src == c.last {
		return c.re, c.err
	}
	e, ok := c.all[src]
	if !ok {
		if c.all == nil || len(c.all) >= maxCachedRegex {
			c.all = map[string]cachedRegex{}
		}
		e.re, e.err = compileRegex(src)
		c.all[strings.Clone(src)] = e
	}
	c.last, c.re, c.err = strings.Clone(src), e.re, e.err
	return e.re, e.err
}
