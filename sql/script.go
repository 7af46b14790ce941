package sql

import (
	"github.com/streamsql/streamsql/sql/diag"
)

// Statement is one statement of a script. Text is the statement as written, without the semicolon and surrounding
// comments; Pos is its first character. All positions, also those of errors, count from the start of the script.
type Statement struct {
	Stmt Stmt
	Text string
	Pos  diag.Pos
}

// Script hands out the statements of a text one by one, so that each can run before the next is parsed: a mistake
// further down does not keep earlier statements from running. It is not safe for concurrent use.
type Script struct {
	lex  *lexer
	toks []token // re-used from statement to statement
}

// NewScript prepares src. It does not look at the text yet.
func NewScript(src string) *Script { return &Script{lex: newLexer(src)} }

// Next parses the next statement. At the end of the script it returns nil and no error. An error is a *diag.Error;
// after one, Next continues behind the semicolon of the statement in error.
func (s *Script) Next() (*Statement, error) {
	toks, _, ok := s.split()
	if !ok {
		return nil, nil
	}
	return parseStatement(s.lex.src, toks)
}

// split collects the tokens of the next statement, empty ones skipped, and ends them with tokEOF. ended reports a
// semicolon at the end, ok that there is a statement.
func (s *Script) split() (toks []token, ended, ok bool) {
	toks = s.toks[:0]
	set := setScanner{}
	for {
		t := s.lex.next()
		if t.kind == tokEOF {
			if len(toks) == 0 {
				return nil, false, false
			}
			break
		}
		if t.op(";") {
			if len(toks) == 0 {
				continue
			}
			if !set.open(toks) {
				t.kind, t.text = tokEOF, ""
				toks = append(toks, t)
				s.toks = toks
				return toks, true, true
			}
		}
		toks = append(toks, t)
	}
	end := s.lex.next()
	s.toks = append(toks, end)
	return s.toks, false, true
}

// setScanner finds out whether the tokens so far are inside a statement set, whose semicolons do not end it.
type setScanner struct {
	checked, inSet bool
}

// open reports that a semicolon behind toks belongs to a statement set that is still open.
func (s *setScanner) open(toks []token) bool {
	if !s.checked {
		s.checked = true
		s.inSet = startsSet(toks)
	}
	if !s.inSet {
		return false
	}
	// END closes the set when it starts a statement: behind a semicolon or behind BEGIN.
	n := len(toks)
	if toks[n-1].is("END") && n >= 2 && (toks[n-2].op(";") || toks[n-2].is("BEGIN")) {
		return false
	}
	return true
}

// startsSet recognises [EXPLAIN .. | EXECUTE | COMPILE ..] STATEMENT SET BEGIN and BEGIN STATEMENT SET.
func startsSet(toks []token) bool {
	if toks[0].is("BEGIN") {
		return len(toks) >= 3 && toks[1].is("STATEMENT") && toks[2].is("SET")
	}
	if !toks[0].is("EXPLAIN") && !toks[0].is("EXECUTE") && !toks[0].is("COMPILE") && !toks[0].is("STATEMENT") {
		return false
	}
	for i := 0; i+2 < len(toks); i++ {
		if toks[i].is("STATEMENT") && toks[i+1].is("SET") && toks[i+2].is("BEGIN") {
			return true
		}
	}
	return false
}

func parseStatement(src string, toks []token) (st *Statement, err error) {
	defer func() {
		if err != nil {
			st, err = nil, diag.At(err, toks[0].pos)
		}
	}()
	defer catch(&err)
	p := newParser(src, toks)
	stmt := p.statement()
	if p.cur().kind != tokEOF {
		p.failTok("';' or the end of the statement")
	}
	text := src[toks[0].pos.Offset:p.prevEnd()]
	return &Statement{Stmt: stmt, Text: text, Pos: toks[0].pos}, nil
}

// ParseScript parses all statements of src. On an error it returns the statements before it.
func ParseScript(src string) ([]Statement, error) {
	var out []Statement
	s := NewScript(src)
	for {
		st, err := s.Next()
		if st == nil || err != nil {
			return out, err
		}
		out = append(out, *st)
	}
}

// SplitComplete reports whether src holds at least one statement and its last one is complete: it ends in a semicolon
// outside quotes, comments and statement sets. A REPL reads lines until this is true.
func SplitComplete(src string) bool {
	s := NewScript(src)
	complete := false
	for {
		toks, ended, ok := s.split()
		if !ok {
			return complete
		}
		if !ended {
			return false
		}
		complete = true
		for i := range toks {
			if toks[i].open {
				return false
			}
		}
	}
}

// ParseExpr parses one scalar expression, as the planner needs it for stored computed columns and watermarks.
func ParseExpr(src string) (e Expr, err error) {
	defer catch(&err)
	p := newParser(src, tokens(src))
	e = p.expr()
	if p.cur().kind != tokEOF {
		p.failTok("the end of the expression")
	}
	return e, nil
}

// ParseQuery parses one query without a semicolon, as the planner needs it for stored views.
func ParseQuery(src string) (q Query, err error) {
	defer catch(&err)
	p := newParser(src, tokens(src))
	q = p.queryExpr()
	if p.cur().kind != tokEOF {
		p.failTok("the end of the query")
	}
	return q, nil
}

func tokens(src string) (toks []token) {
	l := newLexer(src)
	for {
		t := l.next()
		toks = append(toks, t)
		if t.kind == tokEOF {
			return toks
		}
	}
}
