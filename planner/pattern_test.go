package planner

import (
	"testing"

	"github.com/streamsql/streamsql/sql"
	"github.com/streamsql/streamsql/sql/diag"
)

// FuzzPattern: any text is a pattern that can be matched, or an error with a place in it.
func FuzzPattern(f *testing.F) {
	for _, s := range []string{"A B", "A+ B{2,3}? C*", "(A) (B C) D", "`a b`? c", "A /* x */ B -- y\n C", "A{", "A{,2} B", "A{3,} B", "{- A -}", "^A$", "A | B",
		"PERMUTE(A, B)", "A??", "((A)", "é{1}", "A{99999999999999999999} B", ")"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		m := &sql.MatchRecognize{Pattern: "(" + text + ")", PatternPos: diag.Pos{Offset: 10, Line: 1, Col: 11}}
		vars, err := parsePattern(m)
		if err != nil {
			var d *diag.Error
			if !asDiag(err, &d) || !d.Pos.Known() || d.Pos.Offset < 10 || d.Pos.Offset > 10+len(m.Pattern) || d.Hint == "" {
				t.Fatalf("%q: %v at %+v", text, err, d)
			}
			return
		}
		names, some := map[string]bool{}, false
		for _, v := range vars {
			if v.Max == 0 || v.Max > 0 && v.Max < v.Min || v.Min < 0 || v.Name == "" || names[v.Name] {
				t.Fatalf("%q: %+v", text, v)
			}
			names[v.Name] = true
			some = some || v.Min > 0
		}
		if !some {
			t.Fatalf("%q matches no row", text)
		}
	})
}

func TestPatternPlaces(t *testing.T) {
	m := &sql.MatchRecognize{Pattern: "(A\n  é B+? | C)", PatternPos: diag.Pos{Offset: 4, Line: 3, Col: 9}}
	_, err := parsePattern(m)
	var d *diag.Error
	if !asDiag(err, &d) || d.Pos.Line != 4 || d.Pos.Col != 9 {
		t.Fatalf("%v", err)
	}
}
