package equivalence

import (
	"fmt"
	"strings"
)

// code keeps the numbers of a column in another type: one to one, and in their order. So an operator over columns of that
// type means what it means over the numbers, and the evaluation need not know about types.
type code struct {
	typ string
	// to and from are the SQL of the value of a number, and back.
	to, from string
	// mod: the numbers are those below it, and their negatives.
	mod int64
	// group: values can be keys; order: they can be sorted, with NULL for NULL; sum: their sum is the value of the sum.
	group, order, sum bool
}

const day, second0 = "DATE '2020-02-01'", "TIMESTAMP '1970-01-01 00:00:00'"

// plain is BIGINT itself.
var plain = code{"BIGINT", "%s", "%s", 100, true, true, true}

var codes = []code{
	plain,
	number("TINYINT", false), number("SMALLINT", false), number("INT", true), number("FLOAT", true), number("DOUBLE", true),
	number("DECIMAL(4, 1)", true), number("DECIMAL(30, 9)", true), number("DECIMAL(18, 0)", true),
	{"DOUBLE eighths", "(CAST(%s AS DOUBLE) / 8)", "CAST(%s * 8 AS BIGINT)", 100, true, true, true},
	{"BOOLEAN", "(ABS(%s) = 1)", "CAST(CAST(%s AS INT) AS BIGINT)", 2, true, false, false},
	text("CAST(%s + 500 AS STRING)", "%s"),
	text("CAST(CAST(%s + 500 AS STRING) AS CHAR(5))", "TRIM(%s)"),
	text("CAST(%s + 500 AS VARCHAR(3))", "%s"),
	text("(REPEAT('é€𝄞', 9) || CAST(%s + 500 AS STRING))", "RIGHT(%s, 3)"),
	text("CAST(CAST(%s + 500 AS STRING) AS BYTES)", "CAST(%s AS STRING)"),
	{"DATE", "CAST(TIMESTAMPADD(DAY, CAST(%s AS INT), " + day + ") AS DATE)", "CAST(TIMESTAMPDIFF(DAY, " + day + ", %s) AS BIGINT)", 100, true, true, false},
	{"TIMESTAMP(3)", "CAST(" + second0 + " + %s * INTERVAL '1' SECOND AS TIMESTAMP(3))", "CAST(TIMESTAMPDIFF(SECOND, " + second0 + ", %s) AS BIGINT)", 100, true, true, false},
	{"TIMESTAMP(9)", "CAST(" + second0 + " + %s * INTERVAL '1' SECOND AS TIMESTAMP(9))", "CAST(TIMESTAMPDIFF(SECOND, " + second0 + ", %s) AS BIGINT)", 100, true, true, false},
	{"TIMESTAMP_LTZ(3)", "TO_TIMESTAMP_LTZ(%s * 1000, 3)", "CAST(TIMESTAMPDIFF(SECOND, " + second0 + ", CAST(%s AS TIMESTAMP(3))) AS BIGINT)", 100, true, true, false},
	{"ARRAY", "ARRAY[%s, 7]", "%s[1]", 100, true, false, false},
	{"ARRAY of STRING", "ARRAY['x', CAST(%s AS STRING)]", "CAST(%s[2] AS BIGINT)", 100, true, false, false},
	{"ROW", "CAST(ROW(%s, 'x') AS ROW<a BIGINT, b STRING>)", "%s.a", 100, true, false, false},
	{"ARRAY of ROW", "ARRAY[CAST(ROW('x', ROW(%s)) AS ROW<a STRING, b ROW<c BIGINT>>)]", "%s[1].b.c", 100, true, false, false},
	{"MAP", "MAP['k', %s, 'l', 1]", "%s['k']", 100, false, false, false},
}

// number is a code whose cast to and from BIGINT is exact.
func number(typ string, sum bool) code {
	return code{typ, "CAST(%s AS " + typ + ")", "CAST(%s AS BIGINT)", 100, true, true, sum}
}

// text is a code that ends in the three digits of a number plus 500.
func text(to, digits string) code {
	return code{to, to, "(CAST(" + digits + " AS BIGINT) - 500)", 100, true, true, false}
}

// code is a random one that can do what is asked for.
func (g *gen) code(group, order bool) code {
	for {
		c := codes[g.r.IntN(len(codes))]
		if (c.group || !group) && (c.order || !order) {
			return c
		}
	}
}

func (g *gen) codes(n int, group, order bool) []code {
	out := make([]code, n)
	for i := range out {
		out[i] = g.code(group, order)
	}
	return out
}

// encode is q with its first columns in the types of codes.
func encode(q query, by []code) query {
	exprs := make([]scalar, len(by))
	for i, c := range by {
		exprs[i] = binary("%", column(i), constant(c.mod), func(x, y int64) value { return value{v: x % y} })
		if c.typ == "BOOLEAN" { // the negative ones are TRUE too
			in := exprs[i]
			exprs[i] = scalar{"ABS(" + in.sql + ")", func(r row) value {
				v := in.eval(r)
				return value{v: max(v.v, -v.v), null: v.null}
			}}
		}
	}
	return recoded{project{q, exprs}, by, true}
}

// decode gives the columns of q as numbers again.
func decode(q query, by []code) query { return recoded{q, by, false} }

// recoded has the columns of a query in other types, or as numbers again.
type recoded struct {
	in query
	by []code
	to bool
}

func (e recoded) width() int          { return len(e.by) }
func (e recoded) eval(t tables) []row { return e.in.eval(t) }

func (e recoded) sql() string {
	items := make([]string, len(e.by))
	for i, c := range e.by {
		f := c.from
		if e.to {
			f = c.to
		}
		items[i] = fmt.Sprintf(f+" AS c%d", fmt.Sprintf("c%d", i), i)
	}
	return "SELECT " + strings.Join(items, ", ") + " FROM (" + e.in.sql() + ")"
}
