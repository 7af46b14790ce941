package sql

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// flat is a random expression without parentheses: operands with prefix operators, joined by infix operators, some
// followed by predicates. Reference is its tree by Calcite's operator table, found by precedence climbing, which shares
// no code with the skeleton.
type flat struct {
	toks []string
	i    int
}

// calcite is the left precedence of each operator in Calcite's SqlStdOperatorTable; all associate to the left.
var calcite = map[string]int{"OR": 22, "AND": 24, "NOT": 26, "=": 30, "<>": 30, "<": 30, ">": 30, "<=": 30, ">=": 30,
	"IS DISTINCT FROM": 30, "IS NOT DISTINCT FROM": 30, "+": 40, "-": 40, "*": 60, "/": 60, "%": 60, "||": 60,
	"IS NULL": 28, "IS NOT TRUE": 28, "IN (z)": 32, "NOT IN (z)": 32, "BETWEEN 1 AND z": 32, "LIKE z": 32}

var calciteInfix = strings.Split("OR AND = <> < > <= >= + - * / % ||", " ")

func init() { calciteInfix = append(calciteInfix, "IS DISTINCT FROM", "IS NOT DISTINCT FROM") }

var calcitePostfix = []string{"IS NULL", "IS NOT TRUE", "IN (z)", "NOT IN (z)", "BETWEEN 1 AND z", "LIKE z"}

var postfixTree = map[string]string{"IS NULL": "(is NULL %s)", "IS NOT TRUE": "(is NOT TRUE %s)", "IN (z)": "(in %s [z])",
	"NOT IN (z)": "(NOT in %s [z])", "BETWEEN 1 AND z": "(between %s 1 %s)", "LIKE z": "Like{X:%s Pattern:%s}"}

func randomFlat(r *rand.Rand) *flat {
	f := &flat{}
	for n := range 1 + r.IntN(6) {
		if n > 0 {
			f.toks = append(f.toks, calciteInfix[r.IntN(len(calciteInfix))])
		}
		switch r.IntN(8) {
		case 0:
			f.toks = append(f.toks, "NOT")
		case 1:
			f.toks = append(f.toks, "-x")
		}
		if f.toks == nil || f.toks[len(f.toks)-1] != "-x" {
			f.toks = append(f.toks, string(rune('a'+n)))
		}
		if r.IntN(3) == 0 {
			f.toks = append(f.toks, calcitePostfix[r.IntN(len(calcitePostfix))])
		}
	}
	return f
}

// climb parses operators of at least level min.
func (f *flat) climb(min int) string {
	t := f.toks[f.i]
	f.i++
	left := t
	switch t {
	case "NOT":
		left = "(NOT " + f.climb(calcite["NOT"]) + ")"
	case "-x":
		left = "(- x)"
	}
	return f.climbFrom(left, min)
}

func (f *flat) climbFrom(left string, min int) string {
	for f.i < len(f.toks) {
		op := f.toks[f.i]
		level := calcite[op]
		if level < min {
			break
		}
		f.i++
		if tree, ok := postfixTree[op]; ok {
			args := []any{left}
			if strings.Count(tree, "%s") == 2 { // z begins an operand that reaches up to the next predicate
				args = append(args, f.climbFrom("z", level+1))
			}
			left = fmt.Sprintf(tree, args...)
			continue
		}
		left = fmt.Sprintf("(%s %s %s)", op, left, f.climb(level+1))
	}
	return left
}

// TestPrecedence compares the parser with Calcite's operator table on every pair of infix operators and on random
// sequences. What the parser refuses as ambiguous is not compared, but refusing must stay the exception.
func TestPrecedence(t *testing.T) {
	for _, x := range calciteInfix {
		for _, y := range calciteInfix {
			f := &flat{toks: []string{"a", x, "b", y, "c"}}
			compareFlat(t, f, true)
		}
		for _, y := range calcitePostfix {
			compareFlat(t, &flat{toks: []string{"a", x, "b", y}}, true)
		}
		compareFlat(t, &flat{toks: []string{"NOT", "a", x, "b"}}, true)
		compareFlat(t, &flat{toks: []string{"-x", x, "-x"}}, true)
	}
	r := rand.New(rand.NewPCG(1, 2))
	accepted := 0
	for range 20000 {
		if compareFlat(t, randomFlat(r), false) {
			accepted++
		}
	}
	if accepted < 10000 {
		t.Errorf("only %d of 20000 accepted", accepted)
	}
}

func compareFlat(t *testing.T, f *flat, must bool) bool {
	t.Helper()
	src := strings.Join(f.toks, " ")
	src = strings.ReplaceAll(src, "-x", "- x")
	e, err := ParseExpr(src)
	if err != nil {
		if must {
			t.Errorf("%s: %v", src, err)
		}
		checkError(t, src, err)
		return false
	}
	if got, want := dump(e), f.climb(0); got != want {
		t.Errorf("%s\n  got  %s\n  want %s", src, got, want)
	}
	checkRoundTrip(t, e)
	return true
}
