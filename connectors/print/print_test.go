package print

// Goal: lines look exactly as Flink's. Method: a row of every type through the real sink.

import (
	"bytes"
	"context"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/streamsql/streamsql/catalog"
	"github.com/streamsql/streamsql/connectors"
	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/diag"
	"github.com/streamsql/streamsql/sql/types"
)

func table(kv ...string) *catalog.Table {
	t := &catalog.Table{Name: "out", Options: catalog.NewOptions()}
	t.Options.Set("connector", "print", diag.Pos{})
	for i := 0; i < len(kv); i += 2 {
		t.Options.Set(kv[i], kv[i+1], diag.Pos{Line: 1, Col: 2})
	}
	return t
}

func lines(t *testing.T, tab *catalog.Table, parallel, subtask int, b *batch.Batch) string {
	t.Helper()
	var out bytes.Buffer
	c := Connector(&out)
	if err := c.Check(tab, connectors.UseSink); err != nil {
		t.Fatal(err)
	}
	s, err := c.NewSink(context.Background(), connectors.SinkSpec{Table: tab, Parallel: parallel})
	if err != nil {
		t.Fatal(err)
	}
	w, err := s.Open(context.Background(), subtask)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Write(context.Background(), b); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestValues(t *testing.T) {
	D, S, F, N := types.IntDatum, types.StrDatum, types.FloatDatum, types.NullDatum
	ms := func(h, m, s, f int64) int64 { return ((h*60+m)*60+s)*1000 + f }
	day := int64(19724 * 86400e6)
	row := types.RowOf(types.Field{Name: "x", Type: types.IntType}, types.Field{Name: "y", Type: types.StringType})
	for _, c := range []struct {
		ty   types.Type
		d    types.Datum
		want string
	}{
		{types.IntType, D(-1), "-1"},
		{types.StringType, S("a b"), "a b"},
		{types.StringType, N, "null"},
		{types.BoolType, types.BoolDatum(true), "true"},
		{types.DoubleType, F(1e7), "1.0E7"},
		{types.Of(types.Float), F(float64(float32(0.1))), "0.1"},
		{types.DecimalOf(10, 2), D(100), "1.00"},
		{types.DecimalOf(10, 8), D(1), "1E-8"},
		{types.DecimalOf(38, 2), types.I128Datum(types.I128(-5)), "-0.05"},
		{types.BytesType, S("\x01\xff"), "[1, -1]"},
		{types.DateType, D(19724), "2024-01-02"},
		{types.Of(types.Time), D(ms(3, 4, 0, 0)), "03:04"},
		{types.Of(types.Time), D(ms(3, 4, 5, 120)), "03:04:05.120"},
		{types.TimestampMs, D(day + ms(3, 4, 0, 0)*1000), "2024-01-02T03:04"},
		{types.TimestampMs, D(day + ms(3, 4, 5, 0)*1000), "2024-01-02T03:04:05"},
		{types.TimestampMs, D(day + ms(3, 4, 5, 123)*1000), "2024-01-02T03:04:05.123"},
		{types.TimestampOf(types.Timestamp, 6), D(day + 1), "2024-01-02T00:00:00.000001"},
		{types.TimestampOf(types.Timestamp, 9), types.I128Datum(types.I128(7)), "1970-01-01T00:00:00.000000007"},
		{types.TimestampOf(types.TimestampLTZ, 3), D(day), "2024-01-02T00:00:00Z"},
		{types.Of(types.IntervalYearMonth), D(14), "P1Y2M"},
		{types.Of(types.IntervalYearMonth), D(0), "P0D"},
		{types.Of(types.IntervalDayTime), D(ms(8, 6, 12, 340)), "PT8H6M12.34S"},
		{types.Of(types.IntervalDayTime), D(-500), "PT-0.5S"},
		{types.Of(types.IntervalDayTime), D(86400e3), "PT24H"},
		{types.ArrayOf(types.StringType), types.ListDatum(S("a"), N), "[a, null]"},
		{types.MapOf(types.StringType, types.IntType), types.ListDatum(S("k"), D(1), S("l"), N), "{k=1, l=null}"},
		{types.MultisetOf(types.StringType), types.ListDatum(S("k"), D(2)), "{k=2}"},
		{row, types.ListDatum(D(1), N), "+I[1, null]"},
	} {
		b := batch.NewBuilder(types.NewSchema(types.Column{Name: "a", Type: c.ty}))
		b.Cols[0].AppendDatum(c.d)
		b.RowDone()
		if got, want := lines(t, table(), 1, 0, b.Finish()), "+I["+c.want+"]\n"; got != want {
			t.Errorf("%s: got %q want %q", c.ty, got, want)
		}
	}
}

func TestPrefixAndKinds(t *testing.T) {
	b := batch.NewBuilder(types.NewSchema(types.Column{Name: "a", Type: types.IntType}, types.Column{Name: "b", Type: types.StringType}))
	for i, k := range []types.RowKind{types.Insert, types.UpdateBefore, types.UpdateAfter, types.Delete} {
		b.Cols[0].AppendI64(int64(i))
		b.Cols[1].AppendStr("x")
		b.RowKindDone(k)
	}
	rows := b.Finish()
	if got, want := lines(t, table(), 1, 0, rows), "+I[0, x]\n-U[1, x]\n+U[2, x]\n-D[3, x]\n"; got != want {
		t.Errorf("got %q", got)
	}
	rows.Sel = []int32{3}
	for _, c := range []struct {
		id       string
		parallel int
		want     string
	}{{"", 2, "2> -D[3, x]\n"}, {"id", 1, "id> -D[3, x]\n"}, {"id", 2, "id:2> -D[3, x]\n"}} {
		if got := lines(t, table("print-identifier", c.id), c.parallel, 1, rows); got != c.want {
			t.Errorf("%+v: got %q", c, got)
		}
	}
}

// A full disk under standard output ends the job and says so; a writer of the program's own is tried again.
func TestCannotPrint(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skipf("nothing here is always full: %v", err)
	}
	defer full.Close()
	r, w := io.Pipe()
	r.Close()
	b := batch.NewBuilder(types.NewSchema(types.Column{Name: "a", Type: types.IntType}))
	b.Cols[0].AppendI64(1)
	b.RowDone()
	rows := b.Finish()
	for _, c := range []struct {
		out  io.Writer
		code diag.Code
		want string
	}{{full, diag.Output, "table out: rows cannot be printed: write /dev/full: no space left on device"}, {w, diag.External, "closed pipe"}} {
		s, err := Connector(c.out).NewSink(context.Background(), connectors.SinkSpec{Table: table(), Parallel: 1})
		if err != nil {
			t.Fatal(err)
		}
		p, err := s.Open(context.Background(), 0)
		if err != nil {
			t.Fatal(err)
		}
		if err := p.Write(context.Background(), rows); err == nil || diag.CodeOf(err) != c.code || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v of class %s, want %s and %q", err, diag.CodeOf(err), c.code, c.want)
		}
	}
}

func TestRefusals(t *testing.T) {
	c := Connector(&bytes.Buffer{})
	part := table()
	part.Partitions = []string{"a"}
	for want, tab := range map[string]*catalog.Table{
		"did you mean 'print-identifier'?": table("print-identifer", "x"),
		"is not positive":                  table("sink.parallelism", "0"),
		"PARTITIONED BY":                   part,
	} {
		err := c.Check(tab, connectors.UseSink)
		if err == nil || !strings.Contains(diag.Render(err, "", ""), want) {
			t.Errorf("%q: %v", want, err)
		}
	}
}
