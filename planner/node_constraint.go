package planner

import (
	"fmt"
	"slices"
	"strings"

	"github.com/streamsql/streamsql/exec"
	"github.com/streamsql/streamsql/exec/op"
	"github.com/streamsql/streamsql/sql/types"
)

// constraint enforces NOT NULL and lengths before a sink.
type constraint struct {
	In     Node
	Target *sinkTarget
	Drop   bool   // NULLs drop the row instead of failing
	Length string // IGNORE, TRIM_PAD or ERROR
}

func (n *constraint) Inputs() []Node { return []Node{n.In} }

func (n *constraint) withInputs([]Node) Node { return n }

func (n *constraint) Fields() []Field {
	out := slices.Clone(n.In.Fields())
	for i := range out {
		out[i].Type = n.Target.Columns.Columns[i].Type
	}
	return out
}

func (n *constraint) label() string {
	var parts []string
	if cols := n.notNull(); cols != nil {
		parts = append(parts, fmt.Sprintf("%s=[%s]", map[bool]string{false: "notNull", true: "notNullDrop"}[n.Drop], keyNames(n.Fields(), cols)))
	}
	if cols := n.lengths(); cols != nil {
		parts = append(parts, fmt.Sprintf("length=[%s: %s]", strings.ToLower(n.Length), keyNames(n.Fields(), cols)))
	}
	return "ConstraintEnforcer(" + strings.Join(parts, ", ") + ")"
}

func (n *constraint) identity(w *identity) {
	w.put("notNull", n.notNull(), n.Drop)
	w.put("length", n.lengths(), n.Length)
}

// notNull are the columns that can be NULL in the input and must not be in the sink.
func (n *constraint) notNull() []int {
	var out []int
	for i, f := range n.In.Fields() {
		if f.Type.Nullable && !n.Target.Columns.Columns[i].Type.Nullable {
			out = append(out, i)
		}
	}
	return out
}

// lengths are the columns whose values can be longer (or, for CHAR and BINARY, shorter) than the sink's type says.
func (n *constraint) lengths() []int {
	if n.Length == "IGNORE" {
		return nil
	}
	var out []int
	for i, given := range n.Target.Given {
		t := n.Target.Columns.Columns[i].Type
		if !t.IsString() && !t.IsBytes() || t.Precision == types.MaxLength {
			continue
		}
		exact := t.Kind == types.Char || t.Kind == types.Binary
		if exact && !(given.Kind == t.Kind && given.Precision == t.Precision) || !exact && given.Precision > t.Precision {
			out = append(out, i)
		}
	}
	return out
}

func (n *constraint) needed() bool { return n.notNull() != nil || n.lengths() != nil }

func (n *constraint) slug() string   { return "constraint" }
func (n *constraint) stateful() bool { return false }

func (n *constraint) settle(p *phys, d demand, _ *Trait, apply bool) bool {
	return p.settleInput(0, demand{Update: d.Update}, apply)
}

func (n *constraint) upsertKeys(p *phys) [][]int { return p.in[0].keys }

func (n *constraint) lower(_ *lowering, x *exec.Node, _ *phys) {
	rule := map[string]op.LengthRule{"IGNORE": op.LengthIgnore, "TRIM_PAD": op.LengthTrimPad, "ERROR": op.LengthError}[n.Length]
	x.Operator = op.NewConstraint(op.ConstraintSpec{Table: n.Target.Table.Name, Input: x.Output, NotNull: n.notNull(), DropNull: n.Drop, Length: rule})
}
