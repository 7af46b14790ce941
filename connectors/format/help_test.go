package format

import (
	"fmt"
	"strings"
	"testing"

	"github.com/streamsql/streamsql/catalog"
	"github.com/streamsql/streamsql/connectors"
	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/diag"
	"github.com/streamsql/streamsql/sql/types"
)

func cols(kv ...any) *types.Schema {
	s := &types.Schema{}
	for i := 0; i < len(kv); i += 2 {
		s.Columns = append(s.Columns, types.Column{Name: kv[i].(string), Type: kv[i+1].(types.Type)})
	}
	return s
}

// options parses format options "k=v", without prefix, for format f.
func options(t testing.TB, f *Format, kv ...string) (*connectors.Values, error) {
	t.Helper()
	tab := &catalog.Table{Name: "t", Options: catalog.NewOptions()}
	tab.Options.Set("connector", "x", diag.Pos{})
	for _, s := range kv {
		k, v, _ := strings.Cut(s, "=")
		tab.Options.Set(f.Name+"."+k, v, diag.Pos{Line: 3, Col: 5})
	}
	v, err := connectors.Parse(tab, connectors.Prefixed(f.Name+".", f.Options), nil)
	if err != nil {
		return nil, err
	}
	return v.Sub(f.Name + "."), nil
}

func mustOptions(t testing.TB, f *Format, kv ...string) *connectors.Values {
	t.Helper()
	v, err := options(t, f, kv...)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func format(t testing.TB, name string) *Format {
	t.Helper()
	f, ok := Lookup(name)
	if !ok {
		t.Fatalf("no format %s", name)
	}
	return f
}

// decoder makes a decoder of all columns of s, and metadata columns behind them.
func decoder(t testing.TB, name string, s *types.Schema, metas []string, kv ...string) (Decoder, *batch.Builder) {
	t.Helper()
	f := format(t, name)
	v := mustOptions(t, f, kv...)
	if err := f.Check(s, v, connectors.UseSource); err != nil {
		t.Fatal(err)
	}
	spec := DecodeSpec{Schema: s, Options: v, Table: "t"}
	out := &types.Schema{}
	for i, c := range s.Columns {
		spec.Targets = append(spec.Targets, Target{Field: i, Col: i})
		out.Columns = append(out.Columns, c)
	}
	for _, k := range metas {
		for _, m := range f.Metadata {
			if m.Key == k {
				spec.Metadata = append(spec.Metadata, MetaTarget{k, out.Len()})
				out.Columns = append(out.Columns, types.Column{Name: k, Type: m.Type})
			}
		}
	}
	d, err := f.NewDecoder(spec)
	if err != nil {
		t.Fatal(err)
	}
	return d, batch.NewBuilder(out)
}

// decode runs msgs through d and renders rows as "+I(1, a, NULL)", then the error if there is one.
func decode(d Decoder, out *batch.Builder, msgs ...string) string {
	out.Reset()
	var bs [][]byte
	for _, m := range msgs {
		bs = append(bs, []byte(m))
	}
	n, err := d.Decode(bs, out, func(_ int, k types.RowKind) { out.RowKindDone(k) })
	var parts []string
	b := out.Finish()
	for r := range b.N {
		parts = append(parts, rowText(b, r))
	}
	if err != nil {
		parts = append(parts, fmt.Sprintf("error at %d: %v", n, err))
	}
	return strings.Join(parts, " ")
}

func rowText(b *batch.Batch, r int) string {
	var vs []string
	for _, c := range b.Cols {
		vs = append(vs, datumText(c.Datum(r), c.Type))
	}
	return b.Kind(r).String() + "(" + strings.Join(vs, ", ") + ")"
}

func datumText(d types.Datum, t types.Type) string {
	if d.IsNull {
		return "NULL"
	}
	switch t.Kind {
	case types.Boolean:
		return fmt.Sprint(d.Bool)
	case types.Float, types.Double:
		return string(types.AppendFloat(nil, d.F64, floatBits(t)))
	case types.Decimal:
		return string(types.AppendDecimal(nil, d.Decimal(t), t.Scale))
	case types.Char, types.Varchar:
		return d.Str
	case types.Binary, types.Varbinary:
		return fmt.Sprintf("x'%x'", d.Str)
	case types.Date:
		return string(types.AppendISODate(nil, d.I64))
	case types.Time:
		return string(appendClock(nil, d.I64/1e3, d.I64%1e3*1e6))
	case types.Timestamp, types.TimestampLTZ:
		sec, nanos := types.SplitTimestamp(d, t.Precision)
		return string(appendTimestamp(nil, sec, nanos, ' '))
	case types.Array, types.Row:
		var vs []string
		for i, e := range d.List {
			et := t.Elem
			if t.Kind == types.Row {
				et = &t.Fields[i].Type
			}
			vs = append(vs, datumText(e, *et))
		}
		return "[" + strings.Join(vs, " ") + "]"
	case types.Map, types.Multiset:
		var vs []string
		for i := 0; i < len(d.List); i += 2 {
			vt := types.BigIntType
			if t.Kind == types.Map {
				vt = *t.Elem
			}
			vs = append(vs, d.List[i].Str+"="+datumText(d.List[i+1], vt))
		}
		return "{" + strings.Join(vs, " ") + "}"
	}
	return fmt.Sprint(d.I64)
}

// encoder makes an encoder of all columns of s.
func encoder(t testing.TB, name string, s *types.Schema, kv ...string) Encoder {
	t.Helper()
	f := format(t, name)
	v := mustOptions(t, f, kv...)
	if err := f.Check(s, v, connectors.UseSink); err != nil {
		t.Fatal(err)
	}
	spec := EncodeSpec{Schema: s, Options: v, Table: "t"}
	for i := range s.Columns {
		spec.Columns = append(spec.Columns, i)
	}
	e, err := f.NewEncoder(spec)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// rows builds a batch of +I rows; kinds may override.
func rows(s *types.Schema, kinds []types.RowKind, data ...[]types.Datum) *batch.Batch {
	b := batch.NewBuilder(s)
	for i, row := range data {
		for j, d := range row {
			b.Cols[j].AppendDatum(d)
		}
		k := types.Insert
		if kinds != nil {
			k = kinds[i]
		}
		b.RowKindDone(k)
	}
	return b.Finish()
}

func encode(t testing.TB, e Encoder, b *batch.Batch) []string {
	t.Helper()
	var m Messages
	if err := e.Encode(b, &m); err != nil {
		return []string{"error: " + err.Error()}
	}
	var out []string
	for i := range m.Len() {
		if m.At(i) == nil {
			out = append(out, "<null>")
			continue
		}
		out = append(out, string(m.At(i)))
	}
	return out
}
