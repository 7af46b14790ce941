package sql

import (
	"strconv"

	"github.com/streamsql/streamsql/sql/diag"
)

// skeleton is one expression on its way to TiDB: the text over the closed alphabet, and what that text stands for.
//
//	in:  a LIKE 'x' || b AND c IS NOT NULL AND arr[1] > 2
//	out: `#0` IN (`#1`(`#2` DIV `#3`)) AND `#4` <=> ALL (SELECT `#5`()) AND `#6`(`#7`,`#8`) > `#9`
//
// Operands are opaque names. Calls, CAST, item access and the like are calls of opaque functions: they bring their own
// parentheses, so that no operator outside can reach in. Predicates (LIKE, BETWEEN, IN, ANY) become IN with such a call
// in the list and the IS family a comparison with an ALL subquery: these bind exactly as in Calcite and end in a
// parenthesis, so nothing after them can be swallowed. Every entry and every operator must come back exactly once and
// in text order; the converter checks both.
type skeleton struct {
	text    []byte
	entries []entry
	ops     []operator
	marks   []mark
}

// entry is what `#N` stands for: a finished operand, or a node to build from converted arguments. A predicate's first
// argument is its left operand.
type entry struct {
	leaf  Expr
	build func(args []Expr) Expr
	not   bool // predicate after NOT
}

// operator is a prefix or infix operator, kept in text order because TiDB's nodes have no positions.
type operator struct {
	text   string
	pos    diag.Pos
	prefix bool
}

// mark says which place of the script the skeleton text from dst on comes from.
type mark struct {
	dst int
	pos diag.Pos
}

func (s *skeleton) mark(pos diag.Pos) { s.marks = append(s.marks, mark{len(s.text), pos}) }

func (s *skeleton) emit(text string) { s.text = append(s.text, text...) }

func appendRef(b []byte, n int) []byte {
	b = append(b, "`#"...)
	b = strconv.AppendInt(b, int64(n), 10)
	return append(b, '`')
}

// leaf emits a finished operand.
func (s *skeleton) leaf(e Expr) {
	s.mark(e.Position())
	s.text = appendRef(s.text, len(s.entries))
	s.entries = append(s.entries, entry{leaf: e})
}

// open starts a call marker; the caller emits the arguments and then calls close.
func (s *skeleton) open(pos diag.Pos) int {
	s.mark(pos)
	n := len(s.entries)
	s.entries = append(s.entries, entry{})
	s.text = append(appendRef(s.text, n), '(')
	return n
}

func (s *skeleton) close(n int, build func(args []Expr) Expr) {
	s.entries[n].build = build
	s.emit(")")
}

// wrap makes the text emitted since start the first argument of a new call marker, before its parenthesis when that
// text already has one.
func (s *skeleton) wrap(start int, paren bool) int {
	n := len(s.entries)
	s.entries = append(s.entries, entry{})
	head := appendRef(nil, n)
	if !paren {
		head = append(head, '(')
	}
	s.text = append(s.text, head...)
	copy(s.text[start+len(head):], s.text[start:])
	copy(s.text[start:], head)
	for i := len(s.marks) - 1; i >= 0 && s.marks[i].dst > start; i-- {
		s.marks[i].dst += len(head)
	}
	return n
}

// predicate starts a predicate marker after its left operand.
func (s *skeleton) predicate(pos diag.Pos, not bool) int {
	s.mark(pos)
	if not {
		s.emit(" NOT")
	}
	s.emit(" IN (")
	n := s.open(pos)
	s.entries[n].not = not
	return n
}

func (s *skeleton) closePredicate(n int, build func(args []Expr) Expr) {
	s.close(n, build)
	s.emit(")")
}

// is emits a marker of the IS family after its operand.
func (s *skeleton) is(pos diag.Pos, build func(args []Expr) Expr) {
	s.mark(pos)
	s.emit(" <=> ALL (SELECT ")
	s.close(s.open(pos), build)
	s.emit(")")
}

// infixText is what each infix operator is handed over as. || is DIV, which has the level of * as || has in Calcite;
// both forms of IS DISTINCT FROM are comparisons.
var infixText = map[string]string{
	"OR": "OR", "AND": "AND", "=": "=", "<>": "<>", "<": "<", ">": ">", "<=": "<=", ">=": ">=",
	"IS DISTINCT FROM": "<=>", "IS NOT DISTINCT FROM": "<=>",
	"+": "+", "-": "-", "*": "*", "/": "/", "%": "%", "||": "DIV",
}

func (s *skeleton) infix(op string, pos diag.Pos) {
	s.emit(" ")
	s.mark(pos)
	s.emit(infixText[op])
	s.emit(" ")
	s.ops = append(s.ops, operator{text: op, pos: pos})
}

func (s *skeleton) prefix(op string, pos diag.Pos) {
	s.mark(pos)
	s.emit(op)
	s.emit(" ")
	s.ops = append(s.ops, operator{text: op, pos: pos, prefix: true})
}

// single is the expression when it is one operand without any grammar, else nil.
func (s *skeleton) single() Expr {
	if len(s.entries) == 1 && len(s.ops) == 0 {
		return s.entries[0].leaf
	}
	return nil
}

// source is the place of the script that the skeleton text at off comes from.
func (s *skeleton) source(off int) diag.Pos {
	var pos diag.Pos
	for _, m := range s.marks {
		if m.dst > off {
			break
		}
		pos = m.pos
	}
	return pos
}
