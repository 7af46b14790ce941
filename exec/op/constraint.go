package op

import (
	"strings"
	"unicode/utf8"

	"github.com/streamsql/streamsql/exec"
	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/diag"
	"github.com/streamsql/streamsql/sql/expr"
	"github.com/streamsql/streamsql/sql/types"
)

// LengthRule is table.exec.sink.type-length-enforcer.
type LengthRule uint8

// The rules: IGNORE writes values as they are.
const (
	LengthIgnore LengthRule = iota
	LengthTrimPad
	LengthError
)

// ConstraintSpec describes the checks in front of a sink.
type ConstraintSpec struct {
	Table    string
	Input    *types.Schema
	NotNull  []int // columns that must not be NULL
	DropNull bool  // table.exec.sink.not-null-enforcer = DROP: such rows are left out and counted
	Length   LengthRule
}

// NewConstraint enforces NOT NULL and, when asked for, the lengths of CHAR, VARCHAR, BINARY and VARBINARY columns.
func NewConstraint(spec ConstraintSpec) func() exec.Operator {
	return func() exec.Operator { return &constraint{spec: spec} }
}

type constraint struct {
	exec.Stateless
	spec    ConstraintSpec
	dropped *exec.Counter
	sized   []int // columns with a length to enforce
	sel     []int32
	cols    []*batch.Vec
	trimmed []batch.Vec
}

// Open implements exec.Operator.
func (c *constraint) Open(s exec.Subtask) error {
	c.dropped = s.Counter("not-null-dropped")
	c.sel = make([]int32, 0, batch.Size) // not nil even when every row is dropped: a nil selection is all rows
	if c.spec.Length == LengthIgnore {
		return nil
	}
	for i, col := range c.spec.Input.Columns {
		t := col.Type
		if (t.IsString() || t.IsBytes()) && t.Precision < types.MaxLength {
			c.sized = append(c.sized, i)
		}
	}
	c.trimmed = make([]batch.Vec, len(c.sized))
	return nil
}

// Process implements exec.Operator.
func (c *constraint) Process(_ int, b *batch.Batch, out exec.Emitter) error {
	o := *b
	if err := c.checkNulls(b, &o); err != nil {
		return err
	}
	if err := c.fitLengths(&o); err != nil {
		return err
	}
	if o.Len() == 0 {
		return nil
	}
	return out.Emit(&o)
}

func (c *constraint) checkNulls(b, o *batch.Batch) error {
	suspect := false
	for _, k := range c.spec.NotNull {
		suspect = suspect || b.Cols[k].Valid != nil
	}
	if !suspect {
		return nil
	}
	c.sel = c.sel[:0]
rows:
	for i, n := 0, b.Len(); i < n; i++ {
		r := b.Row(i)
		for _, k := range c.spec.NotNull {
			if !b.Cols[k].IsNull(r) {
				continue
			}
			if c.spec.DropNull {
				c.dropped.Add(1)
				continue rows
			}
			name := c.spec.Input.Columns[k].Name
			return &expr.RowError{Row: r, Expr: name, Err: diag.New(diag.Data, diag.Pos{},
				"column %q of table %q is NOT NULL, but a NULL is being written to it", name, c.spec.Table).
				WithHint("filter such rows in the query, declare the column nullable, or SET 'table.exec.sink.not-null-enforcer' = 'DROP'")}
		}
		c.sel = append(c.sel, int32(r))
	}
	o.Sel = c.sel
	return nil
}

func (c *constraint) fitLengths(o *batch.Batch) error {
	if len(c.sized) == 0 {
		return nil
	}
	c.cols = append(c.cols[:0], o.Cols...)
	o.Cols = c.cols
	for x, k := range c.sized {
		v := o.Cols[k]
		t := c.spec.Input.Columns[k].Type
		out := &c.trimmed[x]
		out.Type = v.Type
		out.Resize(len(v.Str))
		out.Valid, out.Const = v.Valid, v.Const
		for i, n := 0, o.Len(); i < n; i++ {
			r := o.Row(i)
			if v.IsNull(r) {
				continue
			}
			s, fits := fit(v.Str[v.Idx(r)], t)
			if !fits && c.spec.Length == LengthError {
				return &expr.RowError{Row: r, Expr: c.spec.Input.Columns[k].Name, Err: diag.New(diag.Data, diag.Pos{},
					"value of column %q of table %q does not fit %s", c.spec.Input.Columns[k].Name, c.spec.Table, t.NotNull().WithNull(true)).
					WithDetail("the value is %q", v.Str[v.Idx(r)]).
					WithHint("cast the value in the query, or SET 'table.exec.sink.type-length-enforcer' = 'TRIM_PAD'")}
			}
			out.Str[v.Idx(r)] = s
		}
		o.Cols[k] = out
	}
	return nil
}

// fit trims or pads s to the length of t; fits is false when that changed it.
func fit(s string, t types.Type) (out string, fits bool) {
	n := len(s)
	if t.IsString() {
		n = utf8.RuneCountInString(s)
	}
	switch {
	case n > t.Precision && t.IsString():
		cut := 0
		for range t.Precision {
			_, w := utf8.DecodeRuneInString(s[cut:])
			cut += w
		}
		return s[:cut], false
	case n > t.Precision:
		return s[:t.Precision], false
	case n < t.Precision && t.Kind == types.Char:
		return s + strings.Repeat(" ", t.Precision-n), false
	case n < t.Precision && t.Kind == types.Binary:
		return s + strings.Repeat("\x00", t.Precision-n), false
	}
	return s, true
}
