package format

// Goal: the byte layouts of the raw format, both ways, and its refusals.

import (
	"fmt"
	"strings"
	"testing"

	"github.com/streamsql/streamsql/connectors"
	"github.com/streamsql/streamsql/sql/types"
)

func TestRawBothWays(t *testing.T) {
	for _, c := range []struct {
		name string
		ty   types.Type
		opts string
		msg  string
		want string
	}{
		{"int", i32, "", "\x00\x00\x00\x2a", "+I(42)"},
		{"int little", i32, "endianness=LITTLE-ENDIAN", "\xfe\xff\xff\xff", "+I(-2)"},
		{"string", str, "", "hi", "+I(hi)"},
		{"empty string", str, "", "", "+I()"},
		{"bool", types.BoolType, "", "\x01", "+I(true)"},
		{"tinyint", types.Of(types.TinyInt), "", "\x80", "+I(-128)"},
		{"smallint", types.Of(types.SmallInt), "", "\x80\x00", "+I(-32768)"},
		{"bigint", i64, "", "\xff\xff\xff\xff\xff\xff\xff\xff", "+I(-1)"},
		{"float", types.Of(types.Float), "", "\x3f\x80\x00\x00", "+I(1.0)"},
		{"double", dbl, "", "\x3f\xf0\x00\x00\x00\x00\x00\x00", "+I(1.0)"},
		{"bytes", types.BytesType, "", "\xff\x00", "+I(x'ff00')"},
		{"latin1", str, "charset=iso-8859-1", "\xe9", "+I(é)"},
		{"utf-16le", str, "charset=UTF-16LE", "\x3d\xd8\x00\xde", "+I(😀)"},
		{"utf-16", str, "charset=UTF-16", "\xfe\xff\x00A", "+I(A)"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := cols("a", c.ty)
			d, out := decoder(t, "raw", s, nil, split(c.opts)...)
			if got := decode(d, out, c.msg); got != c.want {
				t.Fatalf("got %s want %s", got, c.want)
			}
			if back := encode(t, encoder(t, "raw", s, split(c.opts)...), out.Finish())[0]; back != c.msg {
				t.Fatalf("back %q want %q", back, c.msg)
			}
		})
	}
}

func TestRawNull(t *testing.T) {
	s := cols("a", i32)
	d, out := decoder(t, "raw", s, nil)
	if _, err := d.Decode([][]byte{nil, {0, 0, 0, 1}}, out, func(_ int, k types.RowKind) { out.RowKindDone(k) }); err != nil {
		t.Fatal(err)
	}
	b := out.Finish()
	if got := rowText(b, 0) + rowText(b, 1); got != "+I(NULL)+I(1)" {
		t.Fatal(got)
	}
	if got := fmt.Sprintf("%q", encode(t, encoder(t, "raw", s), b)); got != `["<null>" "\x00\x00\x00\x01"]` {
		t.Fatal(got)
	}
}

func TestRawFaults(t *testing.T) {
	d, out := decoder(t, "raw", cols("a", i64), nil)
	if got := decode(d, out, "\x00\x00\x00\x2a"); got != "error at 0: column a: BIGINT needs 8 bytes, the message has 4: 0000002a" {
		t.Fatal(got)
	}
	f := format(t, "raw")
	for _, c := range []struct {
		s    *types.Schema
		opts string
		want string
	}{
		{cols("a", i32, "b", str), "", "exactly one physical column, found 2: a, b"},
		{cols("a", types.DateType), "", "cannot hold column a of type DATE"},
		{cols("a", str), "charset=klingon", "unknown charset 'klingon'"},
		{cols("a", i32), "line-delimiter=x", "only strings and bytes"},
	} {
		if err := f.Check(c.s, mustOptions(t, f, split(c.opts)...), connectors.UseSource); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v", err)
		}
	}
}

func TestRawLines(t *testing.T) {
	s := cols("a", str)
	d, out := decoder(t, "raw", s, nil, `line-delimiter=\n`)
	if got := decode(d, out, "a\n\nb\n", "c"); got != "+I(a) +I() +I(b) +I(c)" {
		t.Fatal(got)
	}
	if got := encode(t, encoder(t, "raw", s, `line-delimiter=\n`), out.Finish()); got[0] != "a\n" {
		t.Fatal(got)
	}
}
