package op_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/streamsql/streamsql/exec"
	"github.com/streamsql/streamsql/exec/op"
	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/expr"
	"github.com/streamsql/streamsql/sql/types"
)

// capture keeps the rows it is given as text.
type capture struct{ rows []string }

func (c *capture) Emit(b *batch.Batch) error {
	for i := range b.Len() {
		r := b.Row(i)
		s := b.Kind(r).String()
		for _, v := range b.Cols {
			if d := v.Datum(r); d.IsNull {
				s += " NULL"
			} else {
				s += fmt.Sprint(" ", d.I64)
			}
		}
		c.rows = append(c.rows, s)
	}
	return nil
}

func calcColumn(i int) expr.Expr {
	return &expr.Column{Index: i, Name: fmt.Sprint("c", i), T: types.BigIntType}
}

func calcInt(t testing.TB, text string) expr.Expr {
	e, err := expr.NewIntLiteral(text)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func calcBinary(t testing.TB, op string, l, r expr.Expr) expr.Expr {
	e, err := expr.NewBinary(op, l, r)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// calcBatch has rows (i, 10*i), the second NULL for i = 3, with kinds in turn.
func calcBatch(n int) *batch.Batch {
	b := batch.NewBuilder(types.NewSchema(types.Column{Name: "a", Type: types.BigIntType}, types.Column{Name: "b", Type: types.BigIntType}))
	for i := range n {
		b.Cols[0].AppendI64(int64(i))
		if i == 3 {
			b.Cols[1].AppendNull()
		} else {
			b.Cols[1].AppendI64(int64(10 * i))
		}
		b.RowKindDone(types.RowKind(i % 4))
	}
	return b.Finish()
}

// TestCalc: filter, projection, both and neither, over batches with and without a selection; kinds pass through, NULL
// conditions drop rows.
func TestCalc(t *testing.T) {
	gt := calcBinary(t, ">", calcColumn(1), calcInt(t, "10"))
	sum := []expr.Expr{calcBinary(t, "+", calcColumn(0), calcColumn(1)), calcColumn(0)}
	for _, tc := range []struct {
		spec op.CalcSpec
		sel  []int32
		want string
	}{
		{op.CalcSpec{}, nil, "[+I 0 0 -U 1 10 +U 2 20 -D 3 NULL +I 4 40]"},
		{op.CalcSpec{Filter: gt}, nil, "[+U 2 20 +I 4 40]"},
		{op.CalcSpec{Project: sum}, nil, "[+I 0 0 -U 11 1 +U 22 2 -D NULL 3 +I 44 4]"},
		{op.CalcSpec{Filter: gt, Project: sum}, nil, "[+U 22 2 +I 44 4]"},
		{op.CalcSpec{Filter: gt, Project: sum}, []int32{0, 3, 4}, "[+I 44 4]"},
		{op.CalcSpec{Project: []expr.Expr{calcColumn(1), calcColumn(1)}}, []int32{1}, "[-U 10 10]"},
		{op.CalcSpec{Filter: gt}, []int32{0, 1}, "[]"},
	} {
		o := op.NewCalc(tc.spec)()
		if err := o.Open(nil); err != nil {
			t.Fatal(err)
		}
		b := calcBatch(5)
		b.Sel = tc.sel
		var c capture
		if err := o.Process(0, b, &c); err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(c.rows); got != tc.want {
			t.Errorf("%+v: %s, want %s", tc.spec, got, tc.want)
		}
	}
}

// TestCalcErrors: an error of a row that the filter drops does not count; one of a row it keeps names the row.
func TestCalcErrors(t *testing.T) {
	div := []expr.Expr{calcBinary(t, "/", calcInt(t, "7"), calcColumn(0))}
	for _, tc := range []struct {
		filter expr.Expr
		fails  bool
	}{{nil, true}, {calcBinary(t, ">", calcColumn(0), calcInt(t, "0")), false}} {
		o := op.NewCalc(op.CalcSpec{Filter: tc.filter, Project: div})()
		if err := o.Open(nil); err != nil {
			t.Fatal(err)
		}
		err := o.Process(0, calcBatch(4), &capture{})
		var re *expr.RowError
		if tc.fails != errors.As(err, &re) || tc.fails && re.Row != 0 {
			t.Errorf("filter %v: error %v", tc.filter, err)
		}
	}
}

// TestUnion: rows of every port pass.
func TestUnion(t *testing.T) {
	u := op.NewUnion()()
	if err := u.Open(nil); err != nil {
		t.Fatal(err)
	}
	var c capture
	for port := range 2 {
		if err := u.Process(port, calcBatch(1), &c); err != nil {
			t.Fatal(err)
		}
	}
	if len(c.rows) != 2 {
		t.Fatal(c.rows)
	}
}

// drop takes rows and does nothing.
type drop struct{}

func (drop) Emit(*batch.Batch) error { return nil }

// BenchmarkCalc is a filter that keeps half of the rows and a sum over them, per input row.
func BenchmarkCalc(b *testing.B) {
	o := op.NewCalc(op.CalcSpec{
		Filter:  calcBinary(b, ">", calcColumn(0), calcInt(b, fmt.Sprint(batch.Size/2))),
		Project: []expr.Expr{calcBinary(b, "+", calcColumn(0), calcColumn(1)), calcColumn(0)},
	})()
	if err := o.Open(nil); err != nil {
		b.Fatal(err)
	}
	in := calcBatch(batch.Size)
	var out exec.Emitter = drop{}
	b.ReportAllocs()
	for b.Loop() {
		if err := o.Process(0, in, out); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/batch.Size, "ns/row")
}
