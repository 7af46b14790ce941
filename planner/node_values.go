package planner

import (
	"fmt"
	"strings"

	"github.com/streamsql/streamsql/exec"
	"github.com/streamsql/streamsql/sql/expr"
)

// Values are constant rows.
type Values struct {
	Rows   [][]expr.Expr
	Schema []Field
}

func (n *Values) Inputs() []Node { return nil }

func (n *Values) withInputs([]Node) Node { return n }

// Fields implements Node.
func (n *Values) Fields() []Field { return n.Schema }

func (n *Values) label() string {
	rows := make([]string, len(n.Rows))
	for i, r := range n.Rows {
		rows[i] = "{" + exprList(r) + "}"
	}
	if len(rows) > 8 {
		rows = append(rows[:8:8], fmt.Sprintf("… %d rows", len(n.Rows)))
	}
	return fmt.Sprintf("Values(rows=[%s])", strings.Join(rows, ", "))
}

func (n *Values) identity(w *identity) { w.put("rows", n.Rows) }

func (n *Values) slug() string   { return "values" }
func (n *Values) stateful() bool { return false }

func (n *Values) modify(*phys, Kinds) Kinds { return Inserts }

func (n *Values) distribute(_ *builder, p *phys) error {
	p.par = 1
	return nil
}

func (n *Values) prune(need []bool) (Node, []int) { return pruneValues(n, need) }

func pruneValues(n *Values, need []bool) (Node, []int) {
	v, m := &Values{Rows: make([][]expr.Expr, len(n.Rows))}, make([]int, len(need))
	for i, k := range need {
		m[i] = -1
		if !k {
			continue
		}
		m[i] = len(v.Schema)
		v.Schema = append(v.Schema, n.Schema[i])
		for r := range n.Rows {
			v.Rows[r] = append(v.Rows[r], n.Rows[r][i])
		}
	}
	return v, m
}

func (n *Values) lower(l *lowering, x *exec.Node, _ *phys) { x.Source = valuesSource(n, l.b.session) }
