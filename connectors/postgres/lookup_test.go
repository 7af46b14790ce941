package postgres

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/streamsql/streamsql/catalog"
	"github.com/streamsql/streamsql/connectors"
	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/types"
	"github.com/streamsql/streamsql/tests/harness"
)

func (f *fixture) lookup(keys ...int) (connectors.Lookup, *types.Schema, error) {
	f.t.Helper()
	if err := check(f.table, connectors.UseLookup); err != nil {
		f.t.Fatal(err)
	}
	s := f.table.PhysicalSchema()
	spec := connectors.LookupSpec{Table: f.table, Schema: s, Keys: keys, Requests: 2}
	for i := range s.Columns {
		spec.Columns = append(spec.Columns, i)
	}
	l, err := newLookup(context.Background(), spec)
	if err == nil {
		f.t.Cleanup(func() { l.Close() })
	}
	return l, s, err
}

// found are rows as "key: col|col".
func found(t *testing.T, l connectors.Lookup, s *types.Schema, keys *batch.Batch) []string {
	t.Helper()
	out := batch.NewBuilder(s)
	of, err := l.Find(t.Context(), keys, out, nil)
	if err != nil {
		t.Fatal(err)
	}
	b := out.Finish()
	var rows []string
	for i := range b.Len() {
		var cols []string
		for _, v := range b.Cols {
			text := "NULL"
			if !v.IsNull(i) {
				text = string(types.AppendText(nil, v.Datum(i), v.Type, nil))
			}
			cols = append(cols, text)
		}
		rows = append(rows, fmt.Sprintf("%d: %s", of[i], strings.Join(cols, "|")))
	}
	slices.Sort(rows)
	return rows
}

func keysOf(s *types.Schema, cols []int, rows ...[]types.Datum) *batch.Batch {
	ks := &types.Schema{}
	for _, c := range cols {
		ks.Columns = append(ks.Columns, s.Columns[c])
	}
	b := batch.NewBuilder(ks)
	for _, r := range rows {
		for i, d := range r {
			b.Cols[i].AppendDatum(d)
		}
		b.RowDone()
	}
	return b.Finish()
}

func TestLookup(t *testing.T) {
	pg := harness.SharedPostgres(t)
	f := newFixture(t, pg, `CREATE TABLE out (id int, name varchar(3), PRIMARY KEY (id, name))`, nil, idName)
	pg.Exec(t, f.db, `INSERT INTO out VALUES (1, 'a'), (1, 'b'), (2, 'b'), (3, '"\{'), (4, 'abc')`)
	l, s, err := f.lookup(0)
	if err != nil {
		t.Fatal(err)
	}
	keys := keysOf(s, []int{0}, []types.Datum{types.IntDatum(2)}, []types.Datum{types.IntDatum(9)}, []types.Datum{types.IntDatum(1)})
	equal(t, found(t, l, s, keys), "0: 2|b", "2: 1|a", "2: 1|b")
	keys.Sel = []int32{1, 2} // of counts the selected rows
	equal(t, found(t, l, s, keys), "1: 1|a", "1: 1|b")
	pg.Exec(t, f.db, `DELETE FROM out WHERE name = 'a'`)
	equal(t, found(t, l, s, keys), "1: 1|b")

	two, s, err := f.lookup(1, 0)
	if err != nil {
		t.Fatal(err)
	}
	key := func(name string, id int64) []types.Datum {
		return []types.Datum{types.StrDatum(name), types.IntDatum(id)}
	}
	// A key longer than the column is not cut, and quotes are only text.
	equal(t, found(t, two, s, keysOf(s, []int{1, 0}, key("b", 2), key(`"\{`, 3), key("abcd", 4), key("b", 3))), "0: 2|b", `1: 3|"\{`)
	if _, err := two.Find(t.Context(), keysOf(s, []int{1, 0}, key("a\x00", 1)), batch.NewBuilder(s), nil); err == nil || !strings.Contains(err.Error(), "U+0000") {
		t.Fatal(err)
	}
}

// TestLookupTypes: a row of every type, found by a key of every type.
func TestLookupTypes(t *testing.T) {
	pg := harness.SharedPostgres(t)
	cols := []catalog.Column{{Name: "b", Type: types.BoolType}, {Name: "i2", Type: types.Type{Kind: types.SmallInt, Nullable: true}}, {Name: "i8", Type: types.BigIntType},
		{Name: "f8", Type: types.DoubleType}, {Name: "d", Type: types.DecimalOf(10, 2)}, {Name: "wide", Type: types.DecimalOf(30, 3)}, {Name: "s", Type: types.StringType},
		{Name: "u", Type: types.StringType}, {Name: "y", Type: types.BytesType}, {Name: "dt", Type: types.DateType},
		{Name: "ts", Type: types.TimestampMs}, {Name: "tz", Type: types.TimestampOf(types.TimestampLTZ, 3)}}
	f := newFixture(t, pg, `CREATE TABLE out (b bool, i2 int2, i8 int8, f8 float8, d numeric(10,2), wide numeric(30,3), s text, u uuid, y bytea, dt date, ts timestamp, tz timestamptz)`, nil, cols)
	pg.Exec(t, f.db, `INSERT INTO out VALUES (true, 2, -8, 1.5, 12.34, 123456789012345678901.5, 'ä', '00000000-0000-0000-0000-000000000001', '\x00ff', '2024-02-29',
		'2024-02-29 12:00:00.1239', '2024-02-29 12:00:00+02'), (NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)`)
	all, s, err := f.lookup(6)
	if err != nil {
		t.Fatal(err)
	}
	out := batch.NewBuilder(s)
	if _, err := all.Find(t.Context(), keysOf(s, []int{6}, []types.Datum{types.StrDatum("ä")}), out, nil); err != nil {
		t.Fatal(err)
	}
	row := out.Finish()
	want := "0: TRUE|2|-8|1.5|12.34|123456789012345678901.500|ä|00000000-0000-0000-0000-000000000001|"
	for k := range cols {
		l, s, err := f.lookup(k)
		if err != nil {
			t.Fatal(err)
		}
		got := found(t, l, s, keysOf(s, []int{k}, []types.Datum{row.Cols[k].Datum(0)}))
		if k == 10 && len(got) == 0 { // the key was cut to milliseconds, the column was not
			continue
		}
		if len(got) != 1 || !strings.HasPrefix(got[0], want) || !strings.Contains(got[0], "|2024-02-29|2024-02-29 12:00:00.123|2024-02-29 10:00:00.000") {
			t.Errorf("by %s: %q", cols[k].Name, got)
		}
	}
}

func TestLookupRefusals(t *testing.T) {
	pg := harness.SharedPostgres(t)
	f := newFixture(t, pg, `CREATE TABLE out (id int, nam text, name2 numeric)`, nil, idName)
	if _, _, err := f.lookup(0); err == nil || !strings.Contains(err.Error(), `has no column "name"`) {
		t.Error(err)
	}
	f.table.Columns = []catalog.Column{{Name: "id", Type: types.IntType}, {Name: "nam", Type: types.DateType}}
	if _, _, err := f.lookup(0); err == nil || !strings.Contains(err.Error(), `column "nam" is DATE, but the PostgreSQL column is text`) {
		t.Error(err)
	}
	f.table.Columns[1] = catalog.Column{Name: "name2", Type: types.DecimalOf(4, 1)}
	pg.Exec(t, f.db, `INSERT INTO out VALUES (1, 'a', 12345678)`)
	l, s, err := f.lookup(0)
	if err != nil {
		t.Fatal(err)
	}
	_, err = l.Find(t.Context(), keysOf(s, []int{0}, []types.Datum{types.IntDatum(1)}), batch.NewBuilder(s), nil)
	if err == nil || !strings.Contains(err.Error(), `column "name2": the value "12345678" of PostgreSQL is not a DECIMAL(4, 1)`) {
		t.Error(err)
	}
	f.table.Options.Set("table-name", "none", f.table.Options.Pos("url"))
	if _, _, err := f.lookup(0); err == nil || !strings.Contains(err.Error(), `table "none" does not exist`) {
		t.Error(err)
	}
}

// TestLookupReconnects: a session that the server ended is replaced, as 'lookup.max-retries' allows.
func TestLookupReconnects(t *testing.T) {
	pg := harness.SharedPostgres(t)
	f := newFixture(t, pg, idNameDDL, nil, idName)
	pg.Exec(t, f.db, `INSERT INTO out VALUES (1, 'a')`)
	l, s, err := f.lookup(0)
	if err != nil {
		t.Fatal(err)
	}
	pg.Exec(t, f.db, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'streamsql:lookup' AND datname = current_database()`)
	equal(t, found(t, l, s, keysOf(s, []int{0}, []types.Datum{types.IntDatum(1)})), "0: 1|a")
}
