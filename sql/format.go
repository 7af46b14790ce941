package sql

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/streamsql/streamsql/sql/types"
)

// Format renders a statement, query, table reference or expression as one line of Flink SQL. The text is deterministic
// (names quoted, keywords in upper case, only needed parentheses) and parses to the same tree.
func Format(n Node) string {
	var f formatter
	switch x := n.(type) {
	case nil:
	case Expr:
		f.expr(x, levelLowest)
	case Query:
		f.query(x)
	case TableRef:
		f.tableRef(x)
	case Stmt:
		f.stmt(x)
	case AlterAction:
		f.alterAction(x)
	default:
		panic(fmt.Sprintf("sql: Format of %T", n))
	}
	return f.sb.String()
}

// FormatType renders t as the type grammar reads it, with NOT NULL when it is not nullable. It differs from t.String in
// intervals, whose precisions Flink prints in another place than it reads them.
func FormatType(t types.Type) string {
	if t.Nullable {
		return typeText(t)
	}
	return typeText(t) + " NOT NULL"
}

type formatter struct{ sb strings.Builder }

func (f *formatter) w(parts ...string) {
	for _, s := range parts {
		f.sb.WriteString(s)
	}
}

// list writes n elements separated by commas.
func (f *formatter) list(n int, elem func(i int)) {
	for i := range n {
		if i > 0 {
			f.w(", ")
		}
		elem(i)
	}
}

func (f *formatter) exprs(l []Expr) {
	f.list(len(l), func(i int) { f.expr(l[i], levelLowest) })
}

func (f *formatter) names(l []Name) {
	f.w("(")
	f.list(len(l), func(i int) { f.w(QuoteIdent(l[i].Text)) })
	f.w(")")
}

// The binding strength of expressions, as in Calcite's operator table.
const (
	levelLowest  = 0
	levelOr      = 22
	levelAnd     = 24
	levelNot     = 26
	levelIs      = 28
	levelCompare = 30
	levelPred    = 32
	levelAdd     = 40
	levelMul     = 60
	levelSign    = 80
	levelPrimary = 100
)

var binaryLevels = map[string]int{"OR": levelOr, "AND": levelAnd, "=": levelCompare, "<>": levelCompare, "<": levelCompare,
	">": levelCompare, "<=": levelCompare, ">=": levelCompare, "IS DISTINCT FROM": levelCompare,
	"IS NOT DISTINCT FROM": levelCompare, "OVERLAPS": levelPred, "+": levelAdd, "-": levelAdd, "*": levelMul, "/": levelMul, "%": levelMul, "||": levelMul}

func levelOf(e Expr) int {
	switch x := e.(type) {
	case *Binary:
		return binaryLevels[x.Op]
	case *Unary:
		if x.Op == "NOT" {
			return levelNot
		}
		return levelSign
	case *Is:
		return levelIs
	case *Between, *In, *Like, *Quantified:
		return levelPred
	}
	return levelPrimary
}

// expr writes e, in parentheses when it binds weaker than min.
func (f *formatter) expr(e Expr, min int) {
	if levelOf(e) < min {
		f.w("(")
		f.expr(e, levelLowest)
		f.w(")")
		return
	}
	switch x := e.(type) {
	case *Binary:
		level := binaryLevels[x.Op]
		f.expr(x.L, level)
		f.w(" ", x.Op, " ")
		f.expr(x.R, level+1)
	case *Unary:
		f.unary(x)
	case *Is:
		f.expr(x.X, levelIs)
		f.w(" IS ", not(x.Not), x.What)
	case *Between:
		f.expr(x.X, levelAdd)
		f.w(" ", not(x.Not), "BETWEEN ")
		if x.Symmetric {
			f.w("SYMMETRIC ")
		}
		f.expr(x.Lo, levelAdd)
		f.w(" AND ")
		f.expr(x.Hi, levelAdd)
	case *In:
		f.expr(x.X, levelAdd)
		f.w(" ", not(x.Not), "IN (")
		if x.Query != nil {
			f.query(x.Query)
		} else {
			f.exprs(x.List)
		}
		f.w(")")
	case *Like:
		f.like(x)
	case *Quantified:
		f.expr(x.X, levelAdd)
		f.w(" ", x.Op, " ", map[bool]string{true: "ALL", false: "ANY"}[x.All], " (")
		f.query(x.Query)
		f.w(")")
	default:
		f.primary(e)
	}
}

func not(b bool) string {
	if b {
		return "NOT "
	}
	return ""
}

func (f *formatter) unary(x *Unary) {
	if x.Op == "NOT" {
		f.w("NOT ")
		f.expr(x.X, levelNot)
		return
	}
	f.w(x.Op)
	if _, ok := x.X.(*Unary); ok {
		f.w(" ") // two minus signs would start a comment
	}
	f.expr(x.X, levelSign)
}

func (f *formatter) like(x *Like) {
	f.expr(x.X, levelAdd)
	f.w(" ", not(x.Not))
	if x.Similar {
		f.w("SIMILAR TO ")
	} else {
		f.w("LIKE ")
	}
	f.expr(x.Pattern, levelAdd)
	if x.Escape != nil {
		f.w(" ESCAPE ")
		f.expr(x.Escape, levelAdd)
	}
}

// primary writes expressions that end in their own bracket or are one word.
func (f *formatter) primary(e Expr) {
	switch x := e.(type) {
	case *Ident:
		f.w(x.Path.String())
	case *Star:
		if x.Qualifier != nil {
			f.w(x.Qualifier.String(), ".")
		}
		f.w("*")
	case *Literal:
		f.literal(x)
	case *Interval:
		f.interval(x)
	case *Call:
		f.call(x)
	case *Cast:
		f.w(map[bool]string{true: "TRY_CAST(", false: "CAST("}[x.Try])
		f.expr(x.X, levelLowest)
		f.w(" AS ", typeText(x.Type), ")")
	case *TimeDiff:
		f.w("(")
		f.expr(x.L, levelAdd)
		f.w(" - ")
		f.expr(x.R, levelMul)
		f.w(") ", intervalUnit(x.Type))
	case *Case:
		f.caseExpr(x)
	case *Item:
		f.base(x.X)
		f.w("[")
		f.expr(x.Index, levelLowest)
		f.w("]")
	case *FieldAccess:
		if _, ok := x.X.(*Ident); ok {
			f.w("(")
			f.expr(x.X, levelLowest)
			f.w(")")
		} else {
			f.base(x.X)
		}
		f.w(".", QuoteIdent(x.Name.Text))
	case *ArrayExpr:
		f.w("ARRAY[")
		f.exprs(x.Elems)
		f.w("]")
	case *MapExpr:
		f.w("MAP[")
		f.list(len(x.Keys), func(i int) {
			f.exprs([]Expr{x.Keys[i], x.Values[i]})
		})
		f.w("]")
	case *RowExpr:
		f.w("ROW(")
		f.exprs(x.Elems)
		f.w(")")
	case *Subquery:
		f.w("(")
		f.query(x.Query)
		f.w(")")
	case *Exists:
		f.w("EXISTS (")
		f.query(x.Query)
		f.w(")")
	case *NamedArg:
		f.w(QuoteIdent(x.Name.Text), " => ")
		f.expr(x.X, levelLowest)
	case *TableArg:
		f.tableArg(x)
	case *Descriptor:
		f.w("DESCRIPTOR")
		f.names(x.Columns)
	default:
		panic(fmt.Sprintf("sql: Format of %T", e))
	}
}

// base writes the operand of [..] and .field.
func (f *formatter) base(e Expr) {
	switch e.(type) {
	case *Literal, *Interval, *TimeDiff:
		f.w("(")
		f.expr(e, levelLowest)
		f.w(")")
	default:
		f.expr(e, levelPrimary)
	}
}

func (f *formatter) literal(l *Literal) {
	switch l.Kind {
	case LitString:
		f.w(QuoteString(l.Text))
	case LitDate:
		f.w("DATE ", QuoteString(l.Text))
	case LitTime:
		f.w("TIME ", QuoteString(l.Text))
	case LitTimestamp:
		f.w("TIMESTAMP ", QuoteString(l.Text))
	case LitBinary:
		f.w("X", QuoteString(l.Text))
	default:
		f.w(l.Text)
	}
}

func (f *formatter) interval(iv *Interval) {
	f.w("INTERVAL ")
	if iv.Negative {
		f.w("-")
	}
	f.w(QuoteString(iv.Text), " ", rangeText(iv.From, iv.To, iv.Type))
}

// rangeText is the unit range with the precisions that are not the default.
func rangeText(from, to string, t types.Type) string {
	s := from
	switch {
	case from == "SECOND" && to == "" && (t.Scale != 6 || t.Precision != 2):
		s += fmt.Sprintf("(%d, %d)", t.Precision, t.Scale)
	case t.Precision != 2:
		s += fmt.Sprintf("(%d)", t.Precision)
	}
	if to != "" {
		s += " TO " + to
	}
	if to == "SECOND" && t.Scale != 6 {
		s += fmt.Sprintf("(%d)", t.Scale)
	}
	return s
}

func intervalUnit(t types.Type) string {
	from, to, _ := strings.Cut(t.Unit, " TO ")
	return rangeText(from, to, t)
}

func (f *formatter) caseExpr(x *Case) {
	f.w("CASE")
	if x.X != nil {
		f.w(" ")
		f.expr(x.X, levelLowest)
	}
	for _, w := range x.Whens {
		f.w(" WHEN ")
		f.expr(w.Cond, levelLowest)
		f.w(" THEN ")
		f.expr(w.Then, levelLowest)
	}
	if x.Else != nil {
		f.w(" ELSE ")
		f.expr(x.Else, levelLowest)
	}
	f.w(" END")
}

// typeText is the type without the nullability of its root.
func typeText(t types.Type) string {
	switch t.Kind {
	case types.IntervalYearMonth, types.IntervalDayTime:
		return "INTERVAL " + intervalUnit(t)
	case types.Array, types.Multiset:
		return t.Kind.String() + "<" + FormatType(*t.Elem) + ">"
	case types.Map:
		return "MAP<" + FormatType(*t.Key) + ", " + FormatType(*t.Elem) + ">"
	case types.Row:
		parts := make([]string, len(t.Fields))
		for i, fld := range t.Fields {
			parts[i] = QuoteIdent(fld.Name) + " " + FormatType(fld.Type)
			if fld.Comment != "" {
				parts[i] += " " + QuoteString(fld.Comment)
			}
		}
		return "ROW<" + strings.Join(parts, ", ") + ">"
	case types.Decimal:
		return "DECIMAL(" + strconv.Itoa(t.Precision) + ", " + strconv.Itoa(t.Scale) + ")"
	}
	t.Nullable = true
	return t.String()
}
