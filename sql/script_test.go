package sql

import (
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/streamsql/streamsql/sql/diag"
)

// TestScriptIsLazy: statements before a mistake are handed out, and those behind it too.
func TestScriptIsLazy(t *testing.T) {
	s := NewScript("SET 'a' = 'b';\n-- comment; with semicolon\nSELECT ';' FROM;\nSELECT \"x;y\";\n SELECT 2")
	want := []string{"1:1 SET 'a' = 'b'", "3:16: expected a table name, found the end of the statement",
		"4:8: double quotes are not used in Flink SQL", "5:2 SELECT 2", ""}
	for i, w := range want {
		st, err := s.Next()
		got := ""
		switch {
		case err != nil:
			got = err.Error()
		case st != nil:
			got = st.Pos.String() + " " + st.Text
		}
		if got != w {
			t.Errorf("statement %d: got %q, want %q", i, got, w)
		}
	}
	if st, err := s.Next(); st != nil || err != nil {
		t.Errorf("behind the end: %v, %v", st, err)
	}
}

// TestParseScriptError: the statements before the error are returned with it.
func TestParseScriptError(t *testing.T) {
	stmts, err := ParseScript("SELECT 1; SELECT 2; SELECT")
	if len(stmts) != 2 || err == nil {
		t.Errorf("got %d statements and error %v", len(stmts), err)
	}
}

// TestStatementText: Text is what was written, with positions into the whole script.
func TestStatementText(t *testing.T) {
	src := "/* a */ BEGIN STATEMENT SET;\nINSERT INTO a SELECT 1;\nEND; -- b\n\n INSERT INTO é SELECT x /* in */ FROM t -- c\n;"
	stmts, err := ParseScript(src)
	if err != nil || len(stmts) != 2 {
		t.Fatalf("%d statements, %v", len(stmts), err)
	}
	if got := stmts[0].Text; got != "BEGIN STATEMENT SET;\nINSERT INTO a SELECT 1;\nEND" {
		t.Errorf("text %q", got)
	}
	if got := stmts[1].Text; got != "INSERT INTO é SELECT x /* in */ FROM t" {
		t.Errorf("text %q", got)
	}
	x := stmts[1].Stmt.(*Insert).Query.(*Select).Items[0].X.Position()
	if x.Line != 5 || x.Col != 23 || src[x.Offset] != 'x' {
		t.Errorf("x is at %+v", x)
	}
}

func TestSplitComplete(t *testing.T) {
	for src, want := range map[string]bool{
		"": false, "  ": false, ";": false, "SELECT 1": false, "SELECT 1;": true, "SELECT 1; -- c": true, "SELECT 1; /* c */ ": true,
		"SELECT 1; SELECT 2": false, "SELECT ';": false, "SELECT 1 -- ;": false, "SELECT 1 /* ; */": false, "SELECT 1 /* ;": false,
		"SELECT `;": false, "SELECT 1; SELECT '": false, "SELECT 1; /* open": false, "SELECT 1; /* open ;": false, "SELECT \"a;b\";": true,
		"BEGIN STATEMENT SET;": false, "BEGIN STATEMENT SET; INSERT INTO a SELECT 1;": false,
		"BEGIN STATEMENT SET; INSERT INTO a SELECT 1; END;": true, "BEGIN STATEMENT SET; END;": true,
		"EXECUTE STATEMENT SET BEGIN INSERT INTO a SELECT CASE WHEN b THEN c END;":      false,
		"EXECUTE STATEMENT SET BEGIN INSERT INTO a SELECT CASE WHEN b THEN c END; END;": true,
		"EXECUTE STATEMENT SET BEGIN END;":                                              true, "EXPLAIN STATEMENT SET BEGIN INSERT INTO a SELECT 1;": false,
		"EXPLAIN STATEMENT SET BEGIN INSERT INTO a SELECT 1; END;": true, "BEGIN;": true, "SELECT (;": true,
	} {
		if got := SplitComplete(src); got != want {
			t.Errorf("SplitComplete(%q) = %v", src, got)
		}
	}
}

// TestPositions: operands, operators and names know their place.
func TestPositions(t *testing.T) {
	e, err := ParseExpr("aa +\n  f(bb) * cc IS NULL")
	if err != nil {
		t.Fatal(err)
	}
	sum := e.(*Is).X.(*Binary)
	product := sum.R.(*Binary)
	for _, c := range []struct {
		name string
		pos  diag.Pos
		want string
	}{
		{"is", e.Position(), "1:1"}, {"+", sum.OpPos, "1:4"}, {"sum", sum.Pos, "1:1"}, {"product", product.Pos, "2:3"},
		{"*", product.OpPos, "2:9"}, {"f", product.L.Position(), "2:3"}, {"bb", product.L.(*Call).Args[0].Position(), "2:5"},
		{"cc", product.R.Position(), "2:11"},
	} {
		if c.pos.String() != c.want {
			t.Errorf("%s is at %s, want %s", c.name, c.pos, c.want)
		}
	}
}

// TestSkeleton shows what TiDB gets to see: operators and opaque names only.
func TestSkeleton(t *testing.T) {
	for src, want := range map[string]string{
		"a LIKE 'x' || b AND c IS NOT NULL AND arr[1] > 2": "`#0` IN (`#1`(`#2` DIV `#3`)) AND `#4` <=> ALL (SELECT `#5`()) AND `#7`(`#6`,`#8`) > `#9`",
		"NOT a IS DISTINCT FROM - f(b, CAST(c AS INT))":    "NOT `#0` <=> - `#1`(`#2`,`#3`(`#4`))",
		"CASE a WHEN 1 THEN (b, c) ELSE (d) END":           "`#0`(CASE `#1` WHEN `#2` THEN `#5`(`#3`,`#4`) ELSE (`#6`) END)",
	} {
		p := newParser(src, tokens(src))
		p.sk = &skeleton{}
		p.walk(false)
		if got := string(p.sk.text); got != want {
			t.Errorf("%s\n  got  %s\n  want %s", src, got, want)
		}
	}
}

// TestLostMarker: a skeleton whose tree does not give everything back is an internal error, not a silent loss.
func TestLostMarker(t *testing.T) {
	leaf := func(s *skeleton, name string) { s.leaf(&Ident{Path: PathOf(name)}) }
	for name, build := range map[string]func(s *skeleton){
		"operator lost": func(s *skeleton) {
			leaf(s, "a")
			s.infix("+", diag.Pos{})
			leaf(s, "b")
			s.ops = append(s.ops, operator{text: "*"})
		},
		"wrong operator": func(s *skeleton) { leaf(s, "a"); s.infix("+", diag.Pos{}); leaf(s, "b"); s.ops[0].text = "-" },
		"entry lost": func(s *skeleton) {
			leaf(s, "a")
			s.entries = append(s.entries, entry{leaf: s.entries[0].leaf})
			s.emit(" ")
		},
		"entry twice":     func(s *skeleton) { leaf(s, "a"); s.infix("+", diag.Pos{}); s.emit("`#0`") },
		"foreign name":    func(s *skeleton) { leaf(s, "a"); s.infix("+", diag.Pos{}); s.emit("b") },
		"alias":           func(s *skeleton) { s.prefix("-", diag.Pos{}); leaf(s, "a"); s.emit(" `#1`") },
		"foreign literal": func(s *skeleton) { leaf(s, "a"); s.infix("+", diag.Pos{}); s.emit("1") },
		"marker operand": func(s *skeleton) {
			n := s.open(diag.Pos{})
			s.close(n, func([]Expr) Expr { return nil })
			s.emit(" + ")
			s.ops = append(s.ops, operator{text: "+"})
			s.emit("`#0`")
		},
	} {
		err := func() (err error) {
			defer catch(&err)
			s := &skeleton{}
			build(s)
			s.tree()
			return nil
		}()
		var e *diag.Error
		if !errors.As(err, &e) || e.Code != diag.Internal {
			t.Errorf("%s: error %v, want an internal one", name, err)
		}
	}
}

// TestConcurrent parses on many goroutines; run with -race it shows that pooled parsers are not shared.
func TestConcurrent(t *testing.T) {
	const src = "SELECT a + b * c, CASE WHEN x IS NULL THEN f(y || z) END FROM t WHERE a BETWEEN b AND c OR NOT d"
	stmts, err := ParseScript(src)
	if err != nil {
		t.Fatal(err)
	}
	want := dump(stmts[0].Stmt)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 50 {
				st, err := ParseScript(src)
				if err != nil || dump(st[0].Stmt) != want {
					t.Errorf("got %v, %v", st, err)
					return
				}
			}
		})
	}
	wg.Wait()
}

// TestLimits: what is too deep or too long is an error, and what is long but flat is not.
func TestLimits(t *testing.T) {
	deep := func(open, mid, close string, n int) string {
		return "SELECT " + strings.Repeat(open, n) + mid + strings.Repeat(close, n)
	}
	for name, c := range map[string]struct {
		src string
		ok  bool
	}{
		"400 parentheses":    {deep("(", "a", ")", 400), true},
		"parentheses":        {deep("(", "a", ")", 100000), false},
		"400 calls":          {deep("f(", "a", ")", 400), true},
		"calls":              {deep("f(", "a", ")", 600), false},
		"subqueries":         {deep("(SELECT ", "a", ")", 600), false},
		"200 subqueries":     {deep("(SELECT ", "a", ")", 200), true},
		"cases":              {deep("CASE WHEN ", "a", " THEN b END", 2000), false},
		"200 cases":          {deep("CASE WHEN ", "a", " THEN b END", 200), true},
		"nots":               {deep("NOT ", "a", "", 100000), false},
		"signs":              {deep("- ", "a", "", 100000), false},
		"types":              {"SELECT CAST(a AS " + strings.Repeat("ARRAY<", 5000) + "INT" + strings.Repeat(">", 5000) + ")", false},
		"postfix types":      {"SELECT CAST(a AS INT" + strings.Repeat(" ARRAY", 5000) + ")", false},
		"accesses":           {deep("a", "", "[1]", 5000), false},
		"400 accesses":       {"SELECT a" + strings.Repeat("[1]", 400), true},
		"10000 operators":    {"SELECT a" + strings.Repeat(" + a", 10000), true},
		"operators":          {"SELECT a" + strings.Repeat(" OR a", 100000), false},
		"100000 IN elements": {"SELECT a IN (1" + strings.Repeat(", 1", 100000) + ")", true},
		"1000 unions":        {"SELECT 1" + strings.Repeat(" UNION ALL SELECT 1", 1000), true},
		"unions":             {"SELECT 1" + strings.Repeat(" UNION ALL SELECT 1", 60000), false},
		"joins":              {"SELECT * FROM t" + strings.Repeat(", t", 60000), false},
	} {
		st, err := ParseScript(c.src)
		if c.ok != (err == nil) {
			t.Errorf("%s: %v", name, err)
		}
		if err != nil {
			checkError(t, c.src, err)
		} else {
			checkRoundTrip(t, st[0].Stmt)
		}
	}
}

// TestBigInsert parses 10,000 rows; a quadratic step anywhere would take minutes.
func TestBigInsert(t *testing.T) {
	src := bigInsert(10000)
	stmts, err := ParseScript(src)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(stmts[0].Stmt.(*Insert).Query.(*Values).Rows); n != 10000 {
		t.Errorf("%d rows", n)
	}
}

func bigInsert(rows int) string {
	return "INSERT INTO t VALUES (1, 'abc', -2.5, CAST('2024-01-01' AS DATE), f(x))" +
		strings.Repeat(", (1, 'abc', -2.5, CAST('2024-01-01' AS DATE), f(x))", rows-1)
}

func BenchmarkInsert10000Rows(b *testing.B) {
	src := bigInsert(10000)
	b.SetBytes(int64(len(src)))
	for b.Loop() {
		if _, err := ParseScript(src); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkSelect(b *testing.B) {
	for b.Loop() {
		if _, err := ParseScript("SELECT a, b FROM t WHERE a > 1"); err != nil {
			b.Fatal(err)
		}
	}
}

func TestKeywords(t *testing.T) {
	for w, want := range map[string]bool{"SELECT": true, "value": true, "User": true, "uuid": false, "key": false, "asof": false,
		"timestamp_ltz": true, "watermark": true, "metadata": false} {
		if IsReserved(w) != want {
			t.Errorf("IsReserved(%s) = %v", w, !want)
		}
	}
	k := Keywords()
	for i := 1; i < len(k); i++ {
		if k[i-1] >= k[i] {
			t.Errorf("%s before %s", k[i-1], k[i])
		}
	}
	for w := range reservedFunctions {
		if !reserved[w] {
			t.Errorf("function word %s is not reserved", w)
		}
	}
}

// TestInvalidUTF8: bytes that are no text are refused where they would become a value or a name.
func TestInvalidUTF8(t *testing.T) {
	for _, src := range []string{"SELECT 'a\xff'", "SELECT `\xf3`", "SELECT 'a'\n '\xff'", "SELECT \xff", "SELECT U&'\xff'"} {
		if _, err := ParseScript(src); err == nil {
			t.Errorf("%q: no error", src)
		} else {
			checkError(t, src, err)
		}
	}
	if _, err := ParseScript("SELECT 1 -- \xff\n"); err != nil {
		t.Errorf("comment: %v", err)
	}
}
