package sql

import "fmt"

func (f *formatter) query(q Query) {
	switch x := q.(type) {
	case *With:
		f.w("WITH ")
		f.list(len(x.CTEs), func(i int) {
			c := x.CTEs[i]
			f.w(QuoteIdent(c.Name.Text))
			if c.Columns != nil {
				f.w(" ")
				f.names(c.Columns)
			}
			f.w(" AS (")
			f.query(c.Query)
			f.w(")")
		})
		f.w(" ")
		_, nested := x.Query.(*With)
		f.queryIn(x.Query, nested)
	case *SetOp:
		f.queryIn(x.L, !operandOf(x.L, setLevel(x)))
		f.w(" ", x.Op, " ")
		if x.All {
			f.w("ALL ")
		}
		f.queryIn(x.R, !operandOf(x.R, setLevel(x)+1))
		f.tail(x.Tail)
	case *Values:
		f.w("VALUES ")
		f.list(len(x.Rows), func(i int) {
			f.w("(")
			f.exprs(x.Rows[i])
			f.w(")")
		})
		f.tail(x.Tail)
	case *Select:
		f.selectBlock(x)
		f.tail(x.Tail)
	default:
		panic(fmt.Sprintf("sql: Format of %T", q))
	}
}

func (f *formatter) queryIn(q Query, parens bool) {
	if parens {
		f.w("(")
		f.query(q)
		f.w(")")
		return
	}
	f.query(q)
}

func setLevel(s *SetOp) int {
	if s.Op == "INTERSECT" {
		return 2
	}
	return 1
}

// operandOf reports that q can be an operand of a set operation of that level without parentheses.
func operandOf(q Query, level int) bool {
	switch x := q.(type) {
	case *Select:
		return x.Tail.IsZero()
	case *Values:
		return x.Tail.IsZero()
	case *SetOp:
		return x.Tail.IsZero() && setLevel(x) >= level
	}
	return false
}

func (f *formatter) tail(t Tail) {
	if t.Order != nil {
		f.w(" ORDER BY ")
		f.order(t.Order)
	}
	if t.Limit != nil {
		f.w(" LIMIT ", t.Limit.Text)
	}
	if t.Offset != nil {
		f.w(" OFFSET ", t.Offset.Text)
	}
}

func (f *formatter) selectBlock(s *Select) {
	f.w("SELECT ")
	if s.Hints != nil {
		f.hints(s.Hints)
		f.w(" ")
	}
	if s.Distinct {
		f.w("DISTINCT ")
	}
	f.list(len(s.Items), func(i int) {
		f.expr(s.Items[i].X, levelLowest)
		if a := s.Items[i].Alias; a != nil {
			f.w(" AS ", QuoteIdent(a.Text))
		}
	})
	if s.From != nil {
		f.w(" FROM ")
		f.tableRef(s.From)
	}
	if s.Where != nil {
		f.w(" WHERE ")
		f.expr(s.Where, levelLowest)
	}
	if s.GroupBy != nil {
		f.w(" GROUP BY ")
		f.groupItems(s.GroupBy)
	}
	if s.Having != nil {
		f.w(" HAVING ")
		f.expr(s.Having, levelLowest)
	}
	if s.Windows != nil {
		f.w(" WINDOW ")
		f.list(len(s.Windows), func(i int) {
			f.w(QuoteIdent(s.Windows[i].Name.Text), " AS (")
			f.window(s.Windows[i].Window)
			f.w(")")
		})
	}
	if s.Qualify != nil {
		f.w(" QUALIFY ")
		f.expr(s.Qualify, levelLowest)
	}
}

func (f *formatter) groupItems(l []GroupItem) {
	f.list(len(l), func(i int) {
		g := l[i]
		switch {
		case g.Kind != GroupExprs:
			f.w([...]string{"", "GROUPING SETS (", "ROLLUP (", "CUBE ("}[g.Kind])
			f.groupItems(g.Items)
			f.w(")")
		case len(g.Exprs) == 1:
			f.expr(g.Exprs[0], levelLowest)
		default:
			f.w("(")
			f.exprs(g.Exprs)
			f.w(")")
		}
	})
}

func (f *formatter) hints(l []Hint) {
	f.w("/*+ ")
	f.list(len(l), func(i int) {
		h := l[i]
		if plainWord(h.Name) {
			f.w(h.Name)
		} else {
			f.w(QuoteIdent(h.Name))
		}
		f.w("(")
		f.options(h.Options, "=")
		if len(h.Options) > 0 && len(h.Args) > 0 {
			f.w(", ")
		}
		f.list(len(h.Args), func(j int) {
			if s := h.Args[j].Text; plainWord(s) {
				f.w(s)
			} else {
				f.w(QuoteString(s))
			}
		})
		f.w(")")
	})
	f.w(" */")
}

func (f *formatter) options(l []Option, eq string) {
	f.list(len(l), func(i int) { f.w(QuoteString(l[i].Key), eq, QuoteString(l[i].Value)) })
}

func (f *formatter) alias(a Alias) {
	if a.Name == nil {
		return
	}
	f.w(" AS ", QuoteIdent(a.Name.Text))
	if a.Columns != nil {
		f.w(" ")
		f.names(a.Columns)
	}
}

func (f *formatter) tableRef(t TableRef) {
	switch x := t.(type) {
	case *Table:
		f.w(x.Path.String())
		if x.Hints != nil {
			f.w(" ")
			f.hints(x.Hints)
		}
		if x.AsOf != nil {
			f.w(" FOR SYSTEM_TIME AS OF ")
			f.expr(x.AsOf, levelLowest)
		}
		f.alias(x.Alias)
	case *Derived:
		f.lateral(x.Lateral)
		f.w("(")
		f.query(x.Query)
		f.w(")")
		f.alias(x.Alias)
	case *TableFunc:
		f.lateral(x.Lateral)
		f.w("TABLE(")
		f.call(x.Call)
		f.w(")")
		f.alias(x.Alias)
	case *Unnest:
		f.w("UNNEST(")
		f.expr(x.X, levelLowest)
		f.w(")")
		if x.Ordinality {
			f.w(" WITH ORDINALITY")
		}
		f.alias(x.Alias)
	case *Join:
		f.join(x)
	case *MatchRecognize:
		f.match(x)
	default:
		panic(fmt.Sprintf("sql: Format of %T", t))
	}
}

func (f *formatter) lateral(b bool) {
	if b {
		f.w("LATERAL ")
	}
}

func (f *formatter) join(j *Join) {
	f.tableRef(j.L)
	if j.Kind == CommaJoin {
		f.w(", ")
	} else {
		f.w(" ")
		if j.Natural {
			f.w("NATURAL ")
		}
		if j.Kind != InnerJoin {
			f.w(j.Kind.String(), " ")
		}
		f.w("JOIN ")
	}
	if _, ok := j.R.(*Join); ok {
		f.w("(")
		f.tableRef(j.R)
		f.w(")")
	} else {
		f.tableRef(j.R)
	}
	if j.On != nil {
		f.w(" ON ")
		f.expr(j.On, levelLowest)
	}
	if j.Using != nil {
		f.w(" USING ")
		f.names(j.Using)
	}
}

func (f *formatter) match(m *MatchRecognize) {
	if _, ok := m.Input.(*Join); ok {
		f.w("(")
		f.tableRef(m.Input)
		f.w(")")
	} else {
		f.tableRef(m.Input)
	}
	f.w(" MATCH_RECOGNIZE (")
	if m.Partition != nil {
		f.w("PARTITION BY ")
		f.exprs(m.Partition)
		f.w(" ")
	}
	if m.Order != nil {
		f.w("ORDER BY ")
		f.order(m.Order)
		f.w(" ")
	}
	if m.Measures != nil {
		f.w("MEASURES ")
		f.list(len(m.Measures), func(i int) {
			x := m.Measures[i]
			if x.Semantics != "" {
				f.w(x.Semantics, " ")
			}
			f.expr(x.X, levelLowest)
			f.w(" AS ", QuoteIdent(x.Name.Text))
		})
		f.w(" ")
	}
	if m.RowsSet {
		f.w(map[bool]string{true: "ALL ROWS", false: "ONE ROW"}[m.AllRows], " PER MATCH ")
	}
	if m.AfterMatch != "" {
		f.w("AFTER MATCH SKIP ", m.AfterMatch, " ")
		if m.SkipTo != nil {
			f.w(QuoteIdent(m.SkipTo.Text), " ")
		}
	}
	f.w("PATTERN ", m.Pattern)
	if m.Within != nil {
		f.w(" WITHIN ")
		f.interval(m.Within)
	}
	f.matchVariables(m)
	f.w(")")
	f.alias(m.Alias)
}

func (f *formatter) matchVariables(m *MatchRecognize) {
	if m.Subsets != nil {
		f.w(" SUBSET ")
		f.list(len(m.Subsets), func(i int) {
			f.w(QuoteIdent(m.Subsets[i].Name.Text), " = ")
			f.names(m.Subsets[i].Of)
		})
	}
	f.w(" DEFINE ")
	f.list(len(m.Definitions), func(i int) {
		f.w(QuoteIdent(m.Definitions[i].Name.Text), " AS ")
		f.expr(m.Definitions[i].Cond, levelLowest)
	})
}
