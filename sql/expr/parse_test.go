package expr

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/streamsql/streamsql/sql/types"
)

// A small parser of SQL expressions, so that the tables below can be read as SQL. It builds through the public
// constructors only. Errors of constructors come back; malformed test input panics.

type exprParser struct {
	toks []string
	pos  int
	reg  *Registry
	cols map[string]*Column
	sess Session
}

var tokenRE = regexp.MustCompile(`\s*('(?:[^']|'')*'|\d+\.?\d*(?:[eE][+-]?\d+)?|\.\d+|[A-Za-z_][A-Za-z0-9_]*|<>|<=|>=|\|\||.)`)

type bindError struct{ err error }

func must(e Expr, err error) Expr {
	if err != nil {
		panic(bindError{err})
	}
	return e
}

// parseExpr binds text. cols may be nil.
func parseExpr(text string, cols map[string]*Column) (e Expr, err error) {
	p := &exprParser{reg: NewRegistry(), cols: cols, sess: Session{Zone: time.UTC}}
	for _, m := range tokenRE.FindAllStringSubmatch(strings.TrimSpace(text), -1) {
		p.toks = append(p.toks, m[1])
	}
	defer func() {
		if r := recover(); r != nil {
			b, ok := r.(bindError)
			if !ok {
				panic(fmt.Sprintf("%s: %v", text, r))
			}
			err = b.err
		}
	}()
	e = p.or()
	if p.pos < len(p.toks) {
		panic("trailing " + strings.Join(p.toks[p.pos:], " "))
	}
	return e, nil
}

func (p *exprParser) peek(words ...string) bool {
	for i, w := range words {
		if p.pos+i >= len(p.toks) || !strings.EqualFold(p.toks[p.pos+i], w) {
			return false
		}
	}
	return true
}

func (p *exprParser) accept(words ...string) bool {
	if p.peek(words...) {
		p.pos += len(words)
		return true
	}
	return false
}

func (p *exprParser) expect(words ...string) {
	if !p.accept(words...) {
		panic("expected " + strings.Join(words, " ") + " at " + strings.Join(p.toks[p.pos:], " "))
	}
}

func (p *exprParser) next() string { p.pos++; return p.toks[p.pos-1] }

func (p *exprParser) or() Expr {
	l := p.and()
	for p.accept("OR") {
		l = must(NewBinary("OR", l, p.and()))
	}
	return l
}

func (p *exprParser) and() Expr {
	l := p.not()
	for p.accept("AND") {
		l = must(NewBinary("AND", l, p.not()))
	}
	return l
}

func (p *exprParser) not() Expr {
	if p.accept("NOT") {
		return must(NewUnary("NOT", p.not()))
	}
	return p.predicate()
}

func (p *exprParser) predicate() Expr {
	l := p.sum()
	for {
		switch {
		case p.accept("IS", "NOT", "DISTINCT", "FROM"):
			l = must(NewBinary("IS NOT DISTINCT FROM", l, p.sum()))
		case p.accept("IS", "DISTINCT", "FROM"):
			l = must(NewBinary("IS DISTINCT FROM", l, p.sum()))
		case p.accept("IS", "NOT"):
			l = must(NewIs(l, strings.ToUpper(p.next()), true))
		case p.accept("IS"):
			l = must(NewIs(l, strings.ToUpper(p.next()), false))
		case p.peek("NOT", "BETWEEN"), p.peek("BETWEEN"):
			not := p.accept("NOT")
			p.next()
			sym := p.accept("SYMMETRIC")
			lo := p.sum()
			p.expect("AND")
			l = must(NewBetween(l, lo, p.sum(), not, sym))
		case p.peek("NOT", "IN"), p.peek("IN"):
			not := p.accept("NOT")
			p.next()
			p.expect("(")
			l = must(NewIn(l, p.list(")"), not))
		case p.peek("NOT", "LIKE"), p.peek("LIKE"), p.peek("SIMILAR"), p.peek("NOT", "SIMILAR"):
			not := p.accept("NOT")
			similar := strings.EqualFold(p.next(), "SIMILAR") && p.accept("TO")
			pat := p.sum()
			var esc Expr
			if p.accept("ESCAPE") {
				esc = p.sum()
			}
			l = must(NewLike(l, pat, esc, similar, not))
		case p.pos < len(p.toks) && cmpOps[p.toks[p.pos]] < 6 && strings.Contains(" = <> < <= > >= ", " "+p.toks[p.pos]+" "):
			op := p.next()
			l = must(NewBinary(op, l, p.sum()))
		default:
			return l
		}
	}
}

func (p *exprParser) sum() Expr {
	l := p.product()
	for p.peek("+") || p.peek("-") || p.peek("||") {
		op := p.next()
		l = must(NewBinary(op, l, p.product()))
	}
	return l
}

func (p *exprParser) product() Expr {
	l := p.unary()
	for p.peek("*") || p.peek("/") || p.peek("%") {
		op := p.next()
		l = must(NewBinary(op, l, p.unary()))
	}
	return l
}

func (p *exprParser) unary() Expr {
	if p.peek("-") || p.peek("+") {
		return must(NewUnary(p.next(), p.unary()))
	}
	e := p.primary()
	for {
		switch {
		case p.accept("["):
			i := p.or()
			p.expect("]")
			e = must(NewItem(e, i))
		case p.accept("."):
			e = must(NewField(e, p.next()))
		default:
			return e
		}
	}
}

func (p *exprParser) list(end string) []Expr {
	var out []Expr
	for !p.accept(end) {
		out = append(out, p.or())
		if !p.accept(",") {
			p.expect(end)
			break
		}
	}
	return out
}

func unquote(s string) string { return strings.ReplaceAll(s[1:len(s)-1], "''", "'") }

func (p *exprParser) primary() Expr {
	t := p.next()
	up := strings.ToUpper(t)
	isStr := p.pos < len(p.toks) && p.toks[p.pos][0] == '\''
	switch {
	case t == "(":
		e := p.or()
		p.expect(")")
		return e
	case t[0] == '\'':
		return NewStringLiteral(unquote(t))
	case t[0] >= '0' && t[0] <= '9' || t[0] == '.':
		switch {
		case strings.ContainsAny(t, "eE"):
			return must(NewApproxLiteral(t))
		case strings.Contains(t, "."):
			return must(NewDecimalLiteral(t))
		}
		return must(NewIntLiteral(t))
	case up == "NULL":
		return NewNullLiteral()
	case up == "TRUE", up == "FALSE":
		return NewBoolLiteral(up == "TRUE")
	case up == "UNKNOWN":
		return &Literal{Value: types.NullDatum, T: types.BoolType}
	case isStr && up == "X":
		return must(NewBinaryLiteral(unquote(p.next())))
	case isStr && up == "DATE":
		return must(NewDateLiteral(unquote(p.next())))
	case isStr && up == "TIME":
		return must(NewTimeLiteral(unquote(p.next())))
	case isStr && up == "TIMESTAMP":
		return must(NewTimestampLiteral(unquote(p.next())))
	case isStr && up == "INTERVAL":
		return p.interval()
	case up == "CAST", up == "TRY_CAST":
		p.expect("(")
		x := p.or()
		p.expect("AS")
		typ := p.typ()
		p.expect(")")
		return must(NewCast(x, typ, up == "TRY_CAST"))
	case up == "CASE":
		return p.caseExpr()
	case up == "ARRAY" && p.accept("["):
		return must(NewArray(p.list("]")))
	case up == "MAP" && p.accept("["):
		return must(NewMap(p.list("]")))
	case up == "ROW" && p.accept("("):
		return must(NewRow(nil, p.list(")")))
	}
	if c := p.cols[t]; c != nil {
		return c
	}
	p.expect("(")
	return p.call(t)
}

// call reads the arguments of a function. Keywords are EXTRACT(unit FROM x), F(unit, x), F(x TO unit), TRIM(LEADING x,
// y), and behind a | a returned type and option words: JSON_VALUE(x, y | RETURNING INT 'NULL ON EMPTY').
func (p *exprParser) call(name string) Expr {
	var o CallOptions
	if p.pos+1 < len(p.toks) {
		up := strings.ToUpper(p.toks[p.pos])
		after := p.toks[p.pos+1]
		switch {
		case unitMonths[up] > 0 || unitMillis[up] > 0 || p.peek(up, "FROM"):
			if after == "," || strings.EqualFold(after, "FROM") {
				o.Unit = up
				p.pos += 2
			}
		case up == "LEADING" || up == "TRAILING" || up == "BOTH":
			o.Words = append(o.Words, up)
			p.pos++
		}
	}
	var args []Expr
	for !p.accept(")") {
		switch {
		case p.accept("TO"):
			o.Unit = strings.ToUpper(p.next())
		case p.accept("|"):
			if p.accept("RETURNING") {
				t := p.typ()
				o.Return = &t
			}
			for !p.peek(")") && !p.peek(",") {
				o.Words = append(o.Words, unquote(p.next()))
			}
		default:
			args = append(args, p.or())
			p.accept(",")
		}
	}
	return must(p.reg.NewCall(name, args, o, p.sess))
}

// interval reads 'n' unit, 'y-m' YEAR and 'd h:m:s' DAY literals.
func (p *exprParser) interval() Expr {
	text, unit := unquote(p.next()), strings.ToUpper(p.next())
	neg := strings.HasPrefix(text, "-")
	text = strings.TrimPrefix(text, "-")
	t := types.Of(types.IntervalDayTime)
	t.Unit = unit
	v := int64(0)
	switch unit {
	case "YEAR", "MONTH", "QUARTER":
		t = types.Of(types.IntervalYearMonth)
		t.Unit = unit
		y, m, ranged := strings.Cut(text, "-")
		n, _ := strconv.ParseInt(y, 10, 64)
		k, _ := strconv.ParseInt(m, 10, 64)
		v = n*intervalUnit(t) + k
		if ranged {
			t.Unit = "YEAR TO MONTH"
		}
	default:
		f, _ := strconv.ParseFloat(text, 64)
		v = int64(f*float64(intervalUnit(t)) + 0.5)
	}
	if neg {
		v = -v
	}
	return NewIntervalLiteral(t, v)
}

func (p *exprParser) caseExpr() Expr {
	var operand, els Expr
	var when, then []Expr
	if !p.peek("WHEN") {
		operand = p.or()
	}
	for p.accept("WHEN") {
		when = append(when, p.or())
		p.expect("THEN")
		then = append(then, p.or())
	}
	if p.accept("ELSE") {
		els = p.or()
	}
	p.expect("END")
	return must(NewCase(operand, when, then, els))
}

var kindsByName = map[string]types.Kind{
	"BOOLEAN": types.Boolean, "TINYINT": types.TinyInt, "SMALLINT": types.SmallInt, "INT": types.Int, "BIGINT": types.BigInt,
	"FLOAT": types.Float, "DOUBLE": types.Double, "DECIMAL": types.Decimal, "CHAR": types.Char, "VARCHAR": types.Varchar,
	"STRING": types.Varchar, "BINARY": types.Binary, "VARBINARY": types.Varbinary, "BYTES": types.Varbinary, "DATE": types.Date,
	"TIME": types.Time, "TIMESTAMP": types.Timestamp, "TIMESTAMP_LTZ": types.TimestampLTZ,
}

func (p *exprParser) typ() types.Type {
	name := strings.ToUpper(p.next())
	switch name {
	case "ARRAY", "MAP":
		p.expect("<")
		a := p.typ()
		if name == "ARRAY" {
			p.expect(">")
			return types.ArrayOf(a)
		}
		p.expect(",")
		b := p.typ()
		p.expect(">")
		return types.MapOf(a, b)
	case "ROW":
		p.expect("<")
		var fs []types.Field
		for {
			n := p.next()
			fs = append(fs, types.Field{Name: n, Type: p.typ()})
			if !p.accept(",") {
				break
			}
		}
		p.expect(">")
		return types.RowOf(fs...)
	case "INTERVAL":
		unit := strings.ToUpper(p.next())
		t := types.Of(types.IntervalDayTime)
		if unit == "YEAR" || unit == "MONTH" {
			t = types.Of(types.IntervalYearMonth)
		}
		t.Unit = unit
		return t
	}
	k, ok := kindsByName[name]
	if !ok {
		panic("unknown type " + name)
	}
	t := types.Of(k)
	if p.accept("(") {
		t.Precision, _ = strconv.Atoi(p.next())
		if p.accept(",") {
			t.Scale, _ = strconv.Atoi(p.next())
		}
		p.expect(")")
	}
	return t
}

// parseType parses a column type.
func parseType(t testing.TB, s string) types.Type {
	t.Helper()
	p := &exprParser{}
	for _, m := range tokenRE.FindAllStringSubmatch(s, -1) {
		p.toks = append(p.toks, m[1])
	}
	return p.typ()
}
