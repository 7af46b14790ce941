package expr

import (
	"regexp"
	"strings"
	"unicode/utf8"
)

// literalSearch speeds up the search for a pattern that has a fixed text in it: only where the text is found is the
// pattern tried, and without one there is no match. Go's regexp does so itself only for a text the pattern begins with.
type literalSearch struct {
	text string
	// before is the most bytes that may come before the text in a match, and least the fewest; before is -1 when there is
	// no bound, and then the text is only a condition.
	least, before int
	first, later  *regexp.Regexp // the pattern anchored at the start of the string, and where something comes before
}

// minLiteral is the length in bytes from which a text is worth looking for.
const minLiteral = 3

// maxTries bounds the starts tried in one text: trying each of many costs more than one pass over the text.
const maxTries = 16

// maxBefore bounds the starts to be tried for each place where the text is.
const maxBefore = 8

// newLiteralSearch makes the search for a pattern of the linear engine; nil when it has no fixed text.
func newLiteralSearch(tree *reNode) *literalSearch {
	items := []*reNode{tree}
	if tree.op == reCat {
		items = tree.subs
	}
	var found *literalSearch
	least, before := 0, 0 // of the items so far
	for i := 0; i < len(items); {
		text, n := literalRun(items[i:])
		if len(text) >= minLiteral && (found == nil || found.before < 0 && len(text) > len(found.text)) {
			found = &literalSearch{text: text, least: least, before: before}
			if before < 0 || before > maxBefore {
				found.before = -1
			}
		}
		if n > 0 {
			least += len(text)
			if before >= 0 {
				before += len(text)
			}
			i += n
			continue
		}
		lo, hi := items[i].width()
		least += lo
		if hi < 0 || before < 0 {
			before = -1
		} else {
			before += hi * utf8.UTFMax
		}
		i++
	}
	if found == nil || found.before < 0 || tree.has(reWordEdge) {
		if found != nil {
			found.before = -1
		}
		return found
	}
	found.first = anchored(tree, false)
	found.later = anchored(tree, true)
	if found.first == nil || found.later == nil {
		found.before = -1
	}
	return found
}

// anchored compiles the pattern for the start of a text. With cut the text is the rest of a longer one: \A does not match.
func anchored(tree *reNode, cut bool) *regexp.Regexp {
	w := reWriter{linear: true, cut: cut}
	w.write(tree)
	re, err := regexp.Compile(`\A(?s:` + w.out.String() + ")")
	if err != nil {
		return nil
	}
	return re
}

// literalRun is the text that the first n items stand for, all of them single characters.
func literalRun(items []*reNode) (text string, n int) {
	var sb strings.Builder
	for _, x := range items {
		if x.op != reSet || len(x.set) != 1 || x.set[0][0] != x.set[0][1] || x.set[0][0] >= utf8.RuneSelf {
			break
		}
		sb.WriteByte(byte(x.set[0][0]))
		n++
	}
	return sb.String(), n
}

// has reports an operator anywhere in the tree.
func (n *reNode) has(op reOp) bool {
	if n.op == op {
		return true
	}
	for _, s := range n.subs {
		if s.has(op) {
			return true
		}
	}
	return false
}

// find is the first match in s; ok is false when the search cannot tell.
func (l *literalSearch) find(s string) (loc []int, ok bool) {
	tried := 0 // starts before it are done with
	tries := 0
	for at := 0; ; {
		i := strings.Index(s[at:], l.text)
		if i < 0 {
			return nil, true
		}
		if l.before < 0 {
			return nil, false
		}
		i += at
		for p := max(tried, i-l.before); p <= i-l.least; p++ {
			if p > 0 && !utf8.RuneStart(s[p]) {
				continue
			}
			if tries++; tries > maxTries {
				return nil, false
			}
			re := l.later
			if p == 0 {
				re = l.first
			}
			if loc := re.FindStringSubmatchIndex(s[p:]); loc != nil {
				for k := range loc {
					if loc[k] >= 0 {
						loc[k] += p
					}
				}
				return loc, true
			}
		}
		tried = max(tried, i-l.least+1)
		at = i + 1
	}
}
