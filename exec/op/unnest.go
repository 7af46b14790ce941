package op

import (
	"fmt"

	"github.com/streamsql/streamsql/exec"
	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/expr"
	"github.com/streamsql/streamsql/sql/types"
)

// UnnestSpec describes CROSS|LEFT JOIN UNNEST(Arg) [WITH ORDINALITY].
type UnnestSpec struct {
	Arg     expr.Expr // an ARRAY, MAP or MULTISET over the input
	Left    bool      // a row whose collection is NULL or empty stays, padded with NULLs
	Ordinal bool      // a last column counts the entries from 1
	Session expr.Session
	// Output is the input's columns, then those of an entry: key and value of a MAP, the fields of a ROW element, else
	// the element; then the ordinality.
	Output *types.Schema
}

// NewUnnest repeats each row for every entry of a collection (Flink: Correlate with UnnestRowsFunction). Row kinds pass
// through; a MULTISET repeats an element as often as it holds it.
func NewUnnest(spec UnnestSpec) func() exec.Operator {
	return func() exec.Operator { return &unnest{spec: spec} }
}

type unnest struct {
	exec.Stateless
	spec  UnnestSpec
	args  *expr.Calc
	width int // columns of an entry
	out   *batch.Builder
}

// Open implements exec.Operator.
func (u *unnest) Open(exec.Subtask) (err error) {
	u.out = batch.NewBuilder(u.spec.Output)
	u.width = len(UnnestColumns(u.spec.Arg.Type()))
	u.args, err = expr.CompileCalc(nil, []expr.Expr{u.spec.Arg}, u.spec.Session)
	return err
}

// UnnestColumns are the columns of an entry of a collection of type t, nil for other types. An element of a nullable ROW
// gives nullable fields.
func UnnestColumns(t types.Type) []types.Column {
	switch t.Kind {
	case types.Map:
		return []types.Column{{Name: "f0", Type: *t.Key}, {Name: "f1", Type: *t.Elem}}
	case types.Array, types.Multiset:
		if t.Elem.Kind != types.Row {
			return []types.Column{{Name: "f0", Type: *t.Elem}}
		}
		var out []types.Column
		for _, f := range t.Elem.Fields {
			out = append(out, types.Column{Name: f.Name, Type: f.Type.WithNull(f.Type.Nullable || t.Elem.Nullable)})
		}
		return out
	}
	return nil
}

// OnWatermark implements exec.Operator.
func (u *unnest) OnWatermark(w exec.Watermark, _ exec.Emitter) error {
	u.args.SetWatermark(int64(w))
	return nil
}

// Process implements exec.Operator.
func (u *unnest) Process(_ int, b *batch.Batch, out exec.Emitter) error {
	args, err := u.args.Apply(b)
	if err != nil {
		return err
	}
	v := args.Cols[0]
	for i, n := 0, b.Len(); i < n; i++ {
		r := b.Row(i)
		some := false
		if !v.IsNull(r) {
			if some, err = u.entries(b, r, v.Str[v.Idx(r)], out); err != nil {
				return err
			}
		}
		if some || !u.spec.Left {
			continue
		}
		u.input(b, r)
		for _, c := range u.out.Cols[len(b.Cols):] {
			c.AppendNull()
		}
		if err := u.done(b.Kind(r), out); err != nil {
			return err
		}
	}
	return flush(u.out, out)
}

// input starts an output row with the columns of the input row.
func (u *unnest) input(b *batch.Batch, r int) {
	for c, v := range b.Cols {
		u.out.Cols[c].AppendFrom(v, r)
	}
}

func (u *unnest) done(k types.RowKind, out exec.Emitter) error {
	u.out.RowKindDone(k)
	if u.out.Full() {
		return flush(u.out, out)
	}
	return nil
}

// entries emits the rows of one collection in its encoded form.
func (u *unnest) entries(b *batch.Batch, r int, src string, out exec.Emitter) (some bool, err error) {
	t := u.spec.Arg.Type()
	n, step := types.NestedLen(src), 1
	if t.Kind != types.Array {
		step = 2
	}
	rest := types.NestedEntries(src)
	ordinal := int64(0)
	for i := 0; i < n; i += step {
		var first, second types.Datum
		if first, rest, err = types.DecodeValue(rest, t.Entry(i)); err != nil {
			return some, fmt.Errorf("UNNEST: %w", err)
		}
		times := int64(1)
		if step == 2 {
			if second, rest, err = types.DecodeValue(rest, t.Entry(i+1)); err != nil {
				return some, fmt.Errorf("UNNEST: %w", err)
			}
		}
		if t.Kind == types.Multiset {
			times = second.I64
		}
		for range times {
			ordinal++
			u.input(b, r)
			u.entry(u.out.Cols[len(b.Cols):], t, first, second)
			if u.spec.Ordinal {
				u.out.Cols[len(u.out.Cols)-1].AppendI64(ordinal)
			}
			if err := u.done(b.Kind(r), out); err != nil {
				return some, err
			}
			some = true
		}
	}
	return some, nil
}

// entry appends the columns of one entry.
func (u *unnest) entry(cols []*batch.ColBuilder, t types.Type, first, second types.Datum) {
	switch {
	case t.Kind == types.Map:
		cols[0].AppendDatum(first)
		cols[1].AppendDatum(second)
	case t.Elem.Kind != types.Row:
		cols[0].AppendDatum(first)
	default:
		for i := range u.width {
			if first.IsNull {
				cols[i].AppendNull()
			} else {
				cols[i].AppendDatum(first.List[i])
			}
		}
	}
}
