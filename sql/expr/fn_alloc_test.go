package expr

import (
	"strings"
	"testing"

	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/types"
)

// functionRows is a batch of strings, integers and time stamps.
func functionRows(n int) (*batch.Batch, map[string]*Column) {
	s, i, ts := batch.NewVec(types.StringType, n), batch.NewVec(types.BigIntType, n), batch.NewVec(types.TimestampOf(types.Timestamp, 3), n)
	j, u := batch.NewVec(types.StringType, n), batch.NewVec(types.StringType, n)
	for r := range n {
		s.Str[r] = "row-" + strings.Repeat("x", r%7) + "é"
		i.I64[r] = int64(r)
		ts.I64[r] = 1709249401000000 + int64(r)*1000000
		j.Str[r] = `{"user": {"id": 7, "name": "anna"}, "tags": ["a", "b"], "price": 12.50}`
		u.Str[r] = "https://shop.example/item?id=42"
	}
	cols := map[string]*Column{}
	b := &batch.Batch{N: n, Cols: []*batch.Vec{s, i, ts, j, u}}
	for k, name := range []string{"s", "i", "ts", "j", "u"} {
		cols[name] = &Column{Index: k, Name: name, T: b.Cols[k].Type}
	}
	return b, cols
}

var functionBenches = []string{
	"UPPER(s)", "SUBSTRING(s, 2, 3)", "REPLACE(s, 'x', 'yy')", "CONCAT(s, '-', s)", "LPAD(s, 20, '*')", "TRIM(s)", "SPLIT_INDEX(s, '-', 1)", "MD5(s)", "REGEXP(s, 'x+')",
	"DATE_FORMAT(ts, 'yyyy-MM-dd HH:mm')", "EXTRACT(HOUR FROM ts)", "FLOOR(ts TO HOUR)", "TO_TIMESTAMP_LTZ(i, 3)", "FROM_UNIXTIME(i)", "TIMESTAMPDIFF(DAY, ts, TIMESTAMP '2024-01-01 00:00:00')",
	"JSON_VALUE(j, '$.user.name')", "JSON_VALUE(j, 'lax $.price' | RETURNING DOUBLE)", "PARSE_URL(u, 'HOST')", "ABS(i)", "SQRT(i)", "HEX(s)", "JSON_OBJECT('a', s)",
	"PARSE_JSON(j)", "CAST(PARSE_JSON(j)['price'] AS DOUBLE)", "JSON_QUERY(j, '$.user')",
}

// TestFunctionAllocations: the frequent functions allocate per batch, not per row.
func TestFunctionAllocations(t *testing.T) {
	if raceDetector {
		t.Skip("under the race detector the pools of regexp drop items")
	}
	const n = 1024
	b, cols := functionRows(n)
	for _, text := range functionBenches {
		p, err := Compile([]Expr{mustParse(t, text, cols)}, Session{})
		if err != nil {
			t.Fatal(err)
		}
		eval := func() {
			if _, err := p.Eval(b); err != nil {
				t.Fatal(err)
			}
		}
		eval()
		if a := testing.AllocsPerRun(5, eval); a > n/8 {
			t.Errorf("%s: %.0f allocations for %d rows", text, a, n)
		}
	}
}

func BenchmarkFunctions(b *testing.B) {
	const n = 1024
	rows, cols := functionRows(n)
	for _, text := range functionBenches {
		b.Run(text, func(b *testing.B) {
			e, err := parseExpr(text, cols)
			if err != nil {
				b.Fatal(err)
			}
			p, err := Compile([]Expr{e}, Session{})
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := p.Eval(rows); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/row")
		})
	}
}
