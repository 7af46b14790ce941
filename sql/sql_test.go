package sql

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/streamsql/streamsql/sql/diag"
)

// TestGolden runs testdata. Commands:
//
//	expr    each line is an expression: prints its tree, operators in parentheses
//	ast     a script: prints the tree of each statement
//	format  a script: prints each statement as Format renders it
//	error   scripts separated by lines of ---: prints the error of each as a terminal shows it
//
// Whatever parses is also formatted and parsed again, which must give the same tree.
func TestGolden(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no golden files: %v", err)
	}
	for _, path := range files {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			var sb strings.Builder
			switch d.Cmd {
			case "expr":
				for _, line := range strings.Split(d.Input, "\n") {
					e, err := ParseExpr(line)
					if err != nil {
						fmt.Fprintln(&sb, diag.Render(err, "", line))
						continue
					}
					fmt.Fprintln(&sb, dump(e))
					checkRoundTrip(t, e)
				}
			case "ast", "format":
				stmts, err := ParseScript(d.Input)
				for _, st := range stmts {
					if d.Cmd == "ast" {
						fmt.Fprintln(&sb, dump(st.Stmt))
					} else {
						fmt.Fprintln(&sb, Format(st.Stmt))
					}
					checkRoundTrip(t, st.Stmt)
				}
				if err != nil {
					fmt.Fprintln(&sb, diag.Render(err, "", d.Input))
				}
			case "error":
				for _, src := range strings.Split(d.Input, "\n---\n") {
					_, err := ParseScript(src)
					if err == nil {
						t.Errorf("%s: no error for %s", d.Pos, src)
						continue
					}
					checkError(t, src, err)
					fmt.Fprintln(&sb, diag.Render(err, "", src))
				}
			default:
				t.Fatalf("unknown command %s", d.Cmd)
			}
			return sb.String()
		})
	}
}

// checkRoundTrip parses Format(n) and compares the trees.
func checkRoundTrip(t testing.TB, n Node) {
	t.Helper()
	text := Format(n)
	var again Node
	var err error
	switch n.(type) {
	case Expr:
		again, err = ParseExpr(text)
	default:
		var stmts []Statement
		if stmts, err = ParseScript(text); err == nil && len(stmts) == 1 {
			again = stmts[0].Stmt
		}
	}
	if err != nil {
		t.Errorf("%s\n  does not parse again: %v", text, err)
		return
	}
	if got, want := dump(again), dump(n); got != want {
		t.Errorf("%s\n  parses again as %s\n  instead of      %s", text, got, want)
	}
}

// checkError demands a diag.Error with a place inside src and a message in house style.
func checkError(t testing.TB, src string, err error) {
	t.Helper()
	var e *diag.Error
	if !errors.As(err, &e) {
		t.Errorf("%q: error %v is no diag.Error", src, err)
		return
	}
	if e.Code == diag.Internal {
		t.Errorf("%q: internal error: %v", src, err)
	}
	if !e.Pos.Known() || e.Pos.Offset > len(src) {
		t.Errorf("%q: place %+v of %v", src, e.Pos, err)
		return
	}
	line := 1 + strings.Count(src[:e.Pos.Offset], "\n")
	col := 1 + len([]rune(src[strings.LastIndexByte(src[:e.Pos.Offset], '\n')+1:e.Pos.Offset]))
	if line != e.Pos.Line || col != e.Pos.Col {
		t.Errorf("%q: offset %d is %d:%d, error says %s", src, e.Pos.Offset, line, col, e.Pos)
	}
}
