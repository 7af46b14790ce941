package sql

import (
	"strings"
	"unicode/utf8"
)

func (f *formatter) call(c *Call) {
	if c.Niladic {
		f.w(strings.ToUpper(c.Name.Last()))
		return
	}
	if !f.specialCall(c) {
		f.w(functionName(c.Name), "(")
		f.callArgs(c)
		f.w(")")
	}
	if c.Within != nil {
		f.w(" WITHIN GROUP (ORDER BY ")
		f.order(c.Within)
		f.w(")")
	}
	if c.Filter != nil {
		f.w(" FILTER (WHERE ")
		f.expr(c.Filter, levelLowest)
		f.w(")")
	}
	switch c.Nulls {
	case IgnoreNulls:
		f.w(" IGNORE NULLS")
	case RespectNulls:
		f.w(" RESPECT NULLS")
	}
	if c.Over != nil {
		f.w(" OVER ")
		if c.Over.Bare {
			f.w(QuoteIdent(c.Over.Ref.Text))
			return
		}
		f.w("(")
		f.window(c.Over)
		f.w(")")
	}
}

func (f *formatter) callArgs(c *Call) {
	if c.Star {
		f.w("*")
	}
	if c.Distinct {
		f.w("DISTINCT ")
	}
	f.exprs(c.Args)
}

// functionName is the name as it was written where that is possible without quotes. A name whose bare form has its own
// argument syntax is quoted: the caller has found that the arguments do not fit that syntax.
func functionName(p Path) string {
	up := strings.ToUpper(p.Last())
	if len(p) > 1 || !plainWord(p[0].Text) || specialCalls[up] != nil || up == "DESCRIPTOR" || up == "MAP" ||
		reserved[up] && !reservedFunctions[up] {
		return p.String()
	}
	return p[0].Text
}

// plainWord reports that s consists of ASCII letters and digits, as a word without quotes does.
func plainWord(s string) bool {
	for i, c := range []byte(s) {
		if c >= utf8.RuneSelf || !isLetter(rune(c)) && (i == 0 || !isDigit(c)) {
			return false
		}
	}
	return s != ""
}

// specialCall writes the calls with words among their arguments and reports whether c is one.
func (f *formatter) specialCall(c *Call) bool {
	if len(c.Name) != 1 || c.Star || c.Distinct || hasNamed(c.Args) {
		return false
	}
	name, n := strings.ToUpper(c.Name[0].Text), len(c.Args)
	var words []string
	switch name {
	case "SUBSTRING":
		words = []string{",", ","}[:max(0, min(n-1, 2))]
	case "OVERLAY":
		words = []string{" PLACING", " FROM", " FOR"}[:max(0, min(n-1, 3))]
	case "POSITION":
		words = []string{" IN", " FROM"}[:max(0, min(n-1, 2))]
	case "CEIL", "CEILING", "FLOOR":
		words = []string{","}[:max(0, min(n-1, 1))]
	case "TRIM", "EXTRACT", "TIMESTAMPADD", "TIMESTAMPDIFF":
		return f.unitCall(name, c)
	case "JSON_VALUE", "JSON_QUERY", "JSON_EXISTS", "JSON_OBJECT", "JSON_OBJECTAGG", "JSON_ARRAY", "JSON_ARRAYAGG":
		return f.jsonCall(name, c)
	}
	if specialCalls[name] == nil || n != len(words)+1 || name == "POSITION" && n < 2 || c.Unit != "" && n != 1 {
		return false
	}
	f.w(c.Name[0].Text, "(")
	level := levelLowest
	if name == "POSITION" {
		level = levelAdd
	}
	f.expr(c.Args[0], level)
	for i, w := range words {
		f.w(w, " ")
		f.expr(c.Args[i+1], levelLowest)
	}
	if c.Unit != "" {
		f.w(" TO ", c.Unit)
	}
	f.w(")")
	return true
}

func hasNamed(args []Expr) bool {
	for _, a := range args {
		switch a.(type) {
		case *NamedArg, *TableArg, *Descriptor:
			return true
		}
	}
	return false
}

// unitCall writes TRIM, EXTRACT, TIMESTAMPADD and TIMESTAMPDIFF.
func (f *formatter) unitCall(name string, c *Call) bool {
	n := len(c.Args)
	switch {
	case name == "TRIM" && (n == 1 || n == 2):
		f.w(c.Name[0].Text, "(")
		if c.Trim != "" {
			f.w(c.Trim, " ")
		}
		if n == 2 {
			f.expr(c.Args[0], levelLowest)
			f.w(" ")
		}
		if n == 2 || c.Trim != "" {
			f.w("FROM ")
		}
	case name == "EXTRACT" && c.Unit != "" && n == 1:
		f.w(c.Name[0].Text, "(", c.Unit, " FROM ")
	case (name == "TIMESTAMPADD" || name == "TIMESTAMPDIFF") && c.Unit != "" && n == 2:
		f.w(c.Name[0].Text, "(", c.Unit, ", ")
		f.expr(c.Args[0], levelLowest)
		f.w(", ")
	default:
		return false
	}
	f.expr(c.Args[n-1], levelLowest)
	f.w(")")
	return true
}

func (f *formatter) jsonCall(name string, c *Call) bool {
	n := len(c.Args)
	o := c.JSON
	if o == nil {
		o = &JSONOptions{}
	}
	switch name {
	case "JSON_VALUE", "JSON_QUERY", "JSON_EXISTS":
		if n != 2 {
			return false
		}
		f.w(c.Name[0].Text, "(")
		f.exprs(c.Args)
	case "JSON_OBJECT", "JSON_OBJECTAGG":
		if n%2 != 0 || n != 2 && name == "JSON_OBJECTAGG" {
			return false
		}
		f.w(c.Name[0].Text, "(")
		f.list(n/2, func(i int) {
			f.w("KEY ")
			f.expr(c.Args[2*i], levelLowest)
			f.w(" VALUE ")
			f.expr(c.Args[2*i+1], levelLowest)
		})
	default:
		f.w(c.Name[0].Text, "(")
		f.exprs(c.Args)
	}
	f.jsonOptions(o, n == 0)
	f.w(")")
	return true
}

func (f *formatter) jsonOptions(o *JSONOptions, first bool) {
	if o.Returning != nil {
		f.w(" RETURNING ", typeText(*o.Returning))
	}
	switch o.Wrapper {
	case "":
	case "WITHOUT":
		f.w(" WITHOUT WRAPPER")
	default:
		f.w(" WITH ", o.Wrapper, " WRAPPER")
	}
	for _, b := range []struct {
		JSONBehavior
		on string
	}{{o.OnEmpty, "EMPTY"}, {o.OnError, "ERROR"}} {
		if b.Kind == "" {
			continue
		}
		f.w(" ", b.Kind)
		if b.Default != nil {
			f.w(" ")
			f.expr(b.Default, levelLowest)
		}
		f.w(" ON ", b.on)
	}
	if o.OnNull != "" {
		if !first {
			f.w(" ")
		}
		f.w(o.OnNull, " ON NULL")
	}
}

func (f *formatter) tableArg(a *TableArg) {
	f.w("TABLE ")
	if a.Query != nil {
		f.w("(")
		f.query(a.Query)
		f.w(")")
	} else {
		f.w(a.Table.String())
	}
	if a.Partition != nil {
		f.w(" PARTITION BY (")
		f.exprs(a.Partition)
		f.w(")")
	}
	if a.Order != nil {
		f.w(" ORDER BY (")
		f.order(a.Order)
		f.w(")")
	}
}

func (f *formatter) order(l []OrderItem) {
	f.list(len(l), func(i int) {
		f.expr(l[i].X, levelLowest)
		if l[i].Desc {
			f.w(" DESC")
		}
		if l[i].Nulls != "" {
			f.w(" NULLS ", l[i].Nulls)
		}
	})
}

func (f *formatter) window(w *Window) {
	sep := ""
	part := func(s string) {
		f.w(sep, s)
		sep = " "
	}
	if w.Ref != nil {
		part(QuoteIdent(w.Ref.Text))
	}
	if w.Partition != nil {
		part("PARTITION BY ")
		f.exprs(w.Partition)
	}
	if w.Order != nil {
		part("ORDER BY ")
		f.order(w.Order)
	}
	if w.Frame != "" {
		part(w.Frame + " BETWEEN ")
		f.bound(w.Lo)
		f.w(" AND ")
		f.bound(w.Hi)
	}
}

func (f *formatter) bound(b Bound) {
	if b.X != nil {
		f.expr(b.X, levelAdd)
		f.w(" ")
	}
	f.w([...]string{"UNBOUNDED PRECEDING", "PRECEDING", "CURRENT ROW", "FOLLOWING", "UNBOUNDED FOLLOWING"}[b.Kind])
}
