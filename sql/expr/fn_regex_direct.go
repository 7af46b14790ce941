package expr

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// direct matches patterns in which nothing has to be tried: texts, characters of a set, repetitions of a set that end where
// what follows begins, and a few alternatives, such as (&|^)name=([^&]*). It finds what the engines find, in the same order:
// the alternatives are written out as sequences, the preferred first, and at each start the first sequence that fits is the
// match. In a sequence there is one way to match at most, or the longest repetition at its end is the one wanted.
type direct struct {
	seqs  []directSeq
	later []directSeq // those that may begin behind the start of the text
	// A match that begins later begins with prefix or, when that is empty, with a byte of first.
	prefix string
	first  *byteSet
}

// directSeq is a sequence: it begins at the start of the text if begin is set.
type directSeq struct {
	begin bool
	steps []directStep
}

type byteSet [256]bool

// directStep is a text, the end of the text, the border of a group, or a repetition of a set.
type directStep struct {
	op     uint8
	text   string
	set    *byteSet
	not    byte // when only is set: the one byte that is not in set
	only   bool
	lo, hi int // bytes; hi < 0: any number
	border int // in the places of a match
}

const (
	stepText uint8 = iota
	stepEnd
	stepBorder
	stepSpan
	stepBegin // only while sequences are made
)

// maxDirect bounds the sequences of a pattern.
const maxDirect = 8

// newDirect is nil for a pattern that it is not made for. The pattern has to be one that Go's regexp runs.
func newDirect(tree *reNode) *direct {
	all, ok := sequences(tree)
	if !ok {
		return nil
	}
	d := &direct{}
	for _, steps := range all {
		q := directSeq{}
		for len(steps) > 0 && (steps[0].op == stepBegin || steps[0].op == stepBorder && hasBegin(steps)) {
			// Borders of groups before ^ stay where they are: at the start.
			if steps[0].op == stepBegin {
				q.begin = true
			} else {
				q.steps = append(q.steps, steps[0])
			}
			steps = steps[1:]
		}
		q.steps = append(q.steps, steps...)
		if !q.decided() {
			return nil
		}
		d.seqs = append(d.seqs, q)
		if !q.begin {
			d.later = append(d.later, q)
		}
	}
	d.starts()
	return d
}

// hasBegin reports ^ among the leading borders.
func hasBegin(steps []directStep) bool {
	for _, s := range steps {
		if s.op != stepBorder {
			return s.op == stepBegin
		}
	}
	return false
}

// sequences writes out the alternatives of n, the preferred first.
func sequences(n *reNode) (out [][]directStep, ok bool) {
	switch n.op {
	case reEmpty:
		return [][]directStep{nil}, true
	case reSet:
		if len(n.set) == 1 && n.set[0][0] == n.set[0][1] && utf8.ValidRune(n.set[0][0]) && n.set[0][0] != utf8.RuneError {
			return [][]directStep{{{op: stepText, text: string(n.set[0][0])}}}, true
		}
		return span(n.set, 1, 1)
	case reCat:
		out = [][]directStep{nil}
		for _, s := range n.subs {
			next, ok := sequences(s)
			if !ok || len(out)*len(next) > maxDirect {
				return nil, false
			}
			out = cross(out, next)
		}
		return out, true
	case reAlt:
		for _, s := range n.subs {
			more, ok := sequences(s)
			if !ok || len(out)+len(more) > maxDirect {
				return nil, false
			}
			out = append(out, more...)
		}
		return out, true
	case reCapture:
		out, ok = sequences(n.subs[0])
		for i := range out {
			out[i] = slices.Concat([]directStep{{op: stepBorder, border: 2 * n.n}}, out[i], []directStep{{op: stepBorder, border: 2*n.n + 1}})
		}
		return out, ok
	case reRepeat:
		return repetition(n)
	case reBegin:
		return [][]directStep{{{op: stepBegin}}}, true
	case reEnd, reDollar: // $ is the end in the texts that the linear engine gets
		return [][]directStep{{{op: stepEnd}}}, true
	}
	return nil, false
}

// cross is every sequence of a with every one of b behind it.
func cross(a, b [][]directStep) [][]directStep {
	var out [][]directStep
	for _, x := range a {
		for _, y := range b {
			out = append(out, slices.Concat(x, y))
		}
	}
	return out
}

func repetition(n *reNode) (out [][]directStep, ok bool) {
	sub := n.subs[0]
	switch {
	case n.lo == 0 && n.hi == 1:
		with, ok := sequences(sub)
		if !ok || n.mode == '+' || len(with) >= maxDirect {
			return nil, false
		}
		if n.mode == '?' {
			return append([][]directStep{nil}, with...), true
		}
		return append(with, nil), true
	case n.mode != 0 || sub.op != reSet:
		return nil, false
	}
	return span(sub.set, n.lo, n.hi)
}

// span is a repetition of a set of code points as one of bytes. A set that has all code points of more than one byte can be
// counted only as "any number" and "one or more".
func span(set runeSet, lo, hi int) (out [][]directStep, ok bool) {
	s := directStep{op: stepSpan, set: &byteSet{}, lo: lo, hi: hi}
	wide := false
	for _, r := range set {
		for c := r[0]; c <= min(r[1], utf8.RuneSelf-1); c++ {
			s.set[c] = true
		}
		if r[1] >= utf8.RuneSelf {
			if r[0] > utf8.RuneSelf || r[1] != utf8.MaxRune || lo > 1 || hi >= 0 {
				return nil, false
			}
			wide = true
		}
	}
	if wide {
		for c := utf8.RuneSelf; c < len(s.set); c++ {
			s.set[c] = true
		}
	}
	missing := 0
	for c, in := range s.set {
		if !in {
			missing++
			s.not = byte(c)
		}
	}
	s.only = missing == 1
	return [][]directStep{{s}}, true
}

// decided reports that every repetition is followed by something that it cannot take, or by nothing.
func (q *directSeq) decided() bool {
	for i, s := range q.steps {
		if s.op == stepBegin {
			return false
		}
		if s.op != stepSpan || s.lo == s.hi {
			continue
		}
	follow:
		for _, f := range q.steps[i+1:] {
			switch f.op {
			case stepText:
				if s.set[f.text[0]] {
					return false
				}
				break follow
			case stepSpan:
				for c, in := range f.set {
					if in && s.set[c] {
						return false
					}
				}
				if f.lo > 0 {
					break follow
				}
			}
		}
	}
	return true
}

// starts finds what the sequences of later begin with.
func (d *direct) starts() {
	d.first = &byteSet{}
	for i, q := range d.later {
		text := ""
		for _, s := range q.steps {
			if s.op == stepText {
				text += s.text
			} else if s.op != stepBorder {
				break
			}
		}
		if i == 0 {
			d.prefix = text
		}
		for !strings.HasPrefix(text, d.prefix) {
			d.prefix = d.prefix[:len(d.prefix)-1]
		}
		q.addFirst(d.first)
	}
}

// addFirst adds the bytes that a match can begin with: all, for one that may be empty.
func (q *directSeq) addFirst(set *byteSet) {
	for _, s := range q.steps {
		switch s.op {
		case stepText:
			set[s.text[0]] = true
			return
		case stepSpan:
			for c, in := range s.set {
				set[c] = set[c] || in
			}
			if s.lo > 0 {
				return
			}
		}
	}
	for c := range set {
		set[c] = true
	}
}

// find sets loc to the places of the first match in s at or behind from: of the whole and of every group, -1 for groups that
// took no part. decided is false when it took too long; the engines then find it in linear time.
func (d *direct) find(s string, from int, loc []int) (found, decided bool) {
	budget := 8*len(s) + 256
	at := from
	if from == 0 {
		if d.matchAny(d.seqs, s, 0, loc, &budget) {
			return true, true
		}
		at = 1
	}
	for len(d.later) > 0 && at <= len(s) {
		if d.prefix != "" {
			i := strings.Index(s[at:], d.prefix)
			if i < 0 {
				return false, true
			}
			at += i
		} else {
			for at < len(s) && !d.first[s[at]] {
				at++
			}
		}
		// In the middle of a character nothing matches that did not match at its start: there a repetition ends where it ends here.
		if d.matchAny(d.later, s, at, loc, &budget) {
			return true, true
		}
		if budget < 0 {
			return false, false
		}
		at++
	}
	return false, true
}

func (d *direct) matchAny(seqs []directSeq, s string, at int, loc []int, budget *int) bool {
	for i := range seqs {
		end, ok := seqs[i].match(s, at, loc)
		if ok {
			loc[0], loc[1] = at, end
			return true
		}
		*budget -= end - at + 1
	}
	return false
}

// match matches s from at on. Without a match, end is how far it came.
func (q *directSeq) match(s string, at int, loc []int) (end int, ok bool) {
	for i := range loc {
		loc[i] = -1
	}
	for i := range q.steps {
		st := &q.steps[i]
		switch st.op {
		case stepText:
			if !strings.HasPrefix(s[at:], st.text) {
				return at, false
			}
			at += len(st.text)
		case stepBorder:
			loc[st.border] = at
		case stepEnd:
			if at != len(s) {
				return at, false
			}
		case stepSpan:
			n := st.take(s[at:])
			at += n
			if n < st.lo {
				return at, false
			}
		}
	}
	return at, true
}

// take is how many bytes of s the repetition takes.
func (st *directStep) take(s string) int {
	if st.only && st.hi < 0 {
		if i := strings.IndexByte(s, st.not); i >= 0 {
			return i
		}
		return len(s)
	}
	if st.hi >= 0 && st.hi < len(s) {
		s = s[:st.hi]
	}
	n := 0
	for n < len(s) && st.set[s[n]] {
		n++
	}
	return n
}
