package sql

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"

	tidb "github.com/pingcap/tidb/pkg/parser"
	"github.com/pingcap/tidb/pkg/parser/ast"
	"github.com/pingcap/tidb/pkg/parser/format"
	"github.com/pingcap/tidb/pkg/parser/mysql"
	"github.com/pingcap/tidb/pkg/parser/opcode"

	"github.com/streamsql/streamsql/sql/diag"
)

// parsers pools TiDB parsers, which cost 17 kB each and are not safe for concurrent use. A parser goes back only after
// its result is converted: it re-uses the slice it returned and may write to nodes of an earlier result.
var parsers = sync.Pool{New: func() any {
	p := tidb.New()
	p.SetSQLMode(mysql.ModeNoBackslashEscapes | mysql.ModeIgnoreSpace)
	p.SetParserConfig(tidb.ParserConfig{EnableWindowFunction: true, SkipPositionRecording: true})
	return p
}}

// tree lets TiDB decide the shape of the skeleton and returns the expression. It panics with a bailout on a syntax error.
func (s *skeleton) tree() Expr {
	if e := s.single(); e != nil {
		return e
	}
	text := "SELECT " + string(s.text)
	p := parsers.Get().(*tidb.Parser)
	defer parsers.Put(p)
	stmts, warns, err := p.ParseSQL(text)
	if err == nil && len(warns) > 0 {
		err = warns[0]
	}
	if err != nil {
		panic(bailout{s.syntaxError(text, err)})
	}
	c := converter{sk: s, used: make([]bool, len(s.entries))}
	e := c.field(stmts)
	c.complete()
	return e
}

// syntaxError places an error of TiDB in the script. Its grammar differs from ours only where an operand of a tight
// operator is a looser expression, so the fix is always a pair of parentheses.
func (s *skeleton) syntaxError(text string, err error) *diag.Error {
	off := errorOffset(text, err.Error()) - len("SELECT ")
	e := diag.New(diag.Syntax, s.source(off), "expression is ambiguous here")
	e.Hint = "put the operand in parentheses, e.g. a = (NOT b) or (a IS NULL) = b"
	return e
}

// errorOffset is where the rest that TiDB quotes after `near` starts. Above 2048 bytes it quotes a part and the length.
func errorOffset(text, msg string) int {
	_, rest, ok := strings.Cut(msg, "near \"")
	if !ok {
		return len(text)
	}
	if _, tail, ok := strings.Cut(rest, "(total length "); ok {
		if n, err := strconv.Atoi(strings.TrimRight(tail, ") ")); err == nil {
			return len(text) - n
		}
	}
	return len(text) - len(strings.TrimSuffix(strings.TrimRight(rest, " "), "\""))
}

// converter turns TiDB's tree into ours. It knows the few node types that skeletons can contain; anything else panics
// and becomes an internal error.
type converter struct {
	sk     *skeleton
	used   []bool
	nextOp int
}

func broken(format string, args ...any) {
	panic("skeleton: " + fmt.Sprintf(format, args...))
}

func (c *converter) field(stmts []ast.StmtNode) Expr {
	if len(stmts) == 1 {
		if sel, ok := stmts[0].(*ast.SelectStmt); ok && sel.From == nil && sel.Where == nil && sel.OrderBy == nil &&
			sel.Limit == nil && len(sel.Fields.Fields) == 1 {
			if f := sel.Fields.Fields[0]; f.WildCard == nil && f.AsName.O == "" {
				return c.expr(f.Expr)
			}
		}
	}
	broken("not one SELECT of one expression")
	return nil
}

// complete checks that nothing of the skeleton was lost.
func (c *converter) complete() {
	for n, ok := range c.used {
		if !ok {
			broken("entry %d is lost", n)
		}
	}
	if c.nextOp != len(c.sk.ops) {
		broken("%d of %d operators found", c.nextOp, len(c.sk.ops))
	}
}

func (c *converter) entry(name string) *entry {
	n, err := strconv.Atoi(strings.TrimPrefix(name, "#"))
	if err != nil || n < 0 || n >= len(c.used) || c.used[n] || name[0] != '#' {
		broken("unexpected name %q", name)
	}
	c.used[n] = true
	return &c.sk.entries[n]
}

var prefixCodes = map[opcode.Op]string{opcode.Minus: "-", opcode.Plus: "+", opcode.Not: "NOT"}

var infixCodes = map[opcode.Op]string{opcode.LogicOr: "OR", opcode.LogicAnd: "AND", opcode.EQ: "=", opcode.NE: "<>",
	opcode.LT: "<", opcode.GT: ">", opcode.LE: "<=", opcode.GE: ">=", opcode.NullEQ: "<=>", opcode.Plus: "+",
	opcode.Minus: "-", opcode.Mul: "*", opcode.Div: "/", opcode.Mod: "%", opcode.IntDiv: "DIV"}

// operator takes the next operator in text order, which must be the one TiDB saw as text.
func (c *converter) operator(text string, prefix bool) operator {
	if c.nextOp >= len(c.sk.ops) {
		broken("operator %q too many", text)
	}
	o := c.sk.ops[c.nextOp]
	c.nextOp++
	want := o.text
	if !prefix {
		want = infixText[o.text]
	}
	if o.prefix != prefix || want != text {
		broken("operator %q where %q was written", text, o.text)
	}
	return o
}

func (c *converter) exprs(nodes []ast.ExprNode) []Expr {
	out := make([]Expr, len(nodes))
	for i, n := range nodes {
		out[i] = c.expr(n)
	}
	return out
}

func (c *converter) expr(n ast.ExprNode) Expr {
	switch x := n.(type) {
	case *ast.ColumnNameExpr:
		e := c.entry(x.Name.Name.O)
		if e.leaf == nil {
			broken("marker as operand")
		}
		return e.leaf
	case *ast.ParenthesesExpr:
		return c.expr(x.Expr)
	case *ast.UnaryOperationExpr:
		o := c.operator(prefixCodes[x.Op], true)
		return &Unary{Place{o.pos}, o.text, c.expr(x.V)}
	case *ast.BinaryOperationExpr:
		l := c.expr(x.L)
		o := c.operator(infixCodes[x.Op], false)
		return &Binary{Place{l.Position()}, o.text, o.pos, l, c.expr(x.R)}
	case *ast.PatternInExpr:
		l := c.expr(x.Expr)
		if len(x.List) != 1 || x.Sel != nil {
			broken("list of a predicate has %d elements", len(x.List))
		}
		return c.call(x.List[0], x.Not, l)
	case *ast.CompareSubqueryExpr:
		l := c.expr(x.L)
		if sub, ok := x.R.(*ast.SubqueryExpr); ok && x.Op == opcode.NullEQ && x.All {
			if sel, ok := sub.Query.(*ast.SelectStmt); ok && len(sel.Fields.Fields) == 1 {
				return c.call(sel.Fields.Fields[0].Expr, false, l)
			}
		}
		broken("unexpected comparison with a subquery")
	case *ast.FuncCallExpr:
		return c.call(x, false)
	case *ast.CaseExpr:
		return c.caseExpr(x)
	}
	broken("unexpected node %T", n)
	return nil
}

// call converts a marker call; first are arguments that precede those in the text.
func (c *converter) call(n ast.ExprNode, not bool, first ...Expr) Expr {
	f, ok := n.(*ast.FuncCallExpr)
	if !ok {
		broken("marker is a %T", n)
	}
	e := c.entry(f.FnName.O)
	if e.build == nil || e.not != not {
		broken("entry %s is no such marker", f.FnName.O)
	}
	return e.build(append(first, c.exprs(f.Args)...))
}

func (c *converter) caseExpr(x *ast.CaseExpr) Expr {
	out := &Case{}
	if x.Value != nil {
		out.X = c.expr(x.Value)
	}
	for _, w := range x.WhenClauses {
		cond := c.expr(w.Expr)
		out.Whens = append(out.Whens, When{cond, c.expr(w.Result)})
	}
	if x.ElseClause != nil {
		out.Else = c.expr(x.ElseClause)
	}
	return out
}

// The parser needs constructors for literals. Skeletons have none, so that ours only have to exist; a program that links
// another driver keeps it.
func init() {
	if ast.NewValueExpr != nil {
		return
	}
	ast.NewValueExpr = func(any, string, string) ast.ValueExpr { return &noValue{} }
	ast.NewParamMarkerExpr = func(int) ast.ParamMarkerExpr { return &noValue{} }
	ast.NewDecimal = func(string) (any, error) { return nil, nil }
	ast.NewHexLiteral = func(string) (any, error) { return nil, nil }
	ast.NewBitLiteral = func(string) (any, error) { return nil, nil }
}

type noValue struct{ ast.TexprNode }

func (*noValue) SetValue(any)                            {}
func (*noValue) GetValue() any                           { return nil }
func (*noValue) GetDatumString() string                  { return "" }
func (*noValue) GetString() string                       { return "" }
func (*noValue) GetProjectionOffset() int                { return 0 }
func (*noValue) SetProjectionOffset(int)                 {}
func (*noValue) SetOrder(int)                            {}
func (*noValue) Restore(*format.RestoreCtx) error        { return nil }
func (*noValue) Format(io.Writer)                        {}
func (n *noValue) Accept(v ast.Visitor) (ast.Node, bool) { return n, true }
