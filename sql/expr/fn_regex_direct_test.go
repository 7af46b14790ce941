package expr

// Goal: the matcher of simple patterns finds the matches of Go's regexp, groups included. Method: random patterns of the pieces that it
// knows, on random texts of pieces that occur in them; a fuzzer with patterns and texts of any kind.

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/streamsql/streamsql/tests/short"
)

func TestDirectKnows(t *testing.T) {
	for src, want := range map[string]bool{
		`(&|^)channel_id=([^&]*)`: true, `([0-9]+)-([0-9]+)`: true, `^https?://([^/:]+)(:[0-9]{1,5})?`: true, `[a-z]*$`: true, `abc`: true, `\[ERROR\] (\w+)`: true,
		`(a|b|c)?x`: true, `é+x`: false, `.*x`: false, `[a-z]+1`: true, `[a-z]+e`: false, `.`: false, `\bx`: false, `(ab)+`: false, `a*?b`: false, `x(?=y)`: false,
		`(a|b)(a|b)(a|b)(a|b)`: false, `[^&]{2}`: false, `x^`: false, `(?i)name=([^;]*)`: true,
	} {
		re, err := compileRegex(src)
		if err != nil {
			t.Fatal(err)
		}
		if got := re.direct != nil; got != want {
			t.Errorf("%s: direct is %v, want %v", src, got, want)
		}
	}
}

var (
	directItems = []string{"a", "bc", "&", "=", "é", "😀", "[^&]*", "[^=]+", "[a-c]*", "[0-9]+", "[0-9]{1,3}", "[ab]{2}", "a*", "b?", "c??", "[^a]*", "$", "^", "(?:é|)", "(?i)aB", `\d`, `\w+`,
		"(&|^)", "(a|ab)", "([^&]*)", "([0-9]+)", "(x)?", "(|a)", "(b(c)?)", "(1|[a-c])", "(a$|b)"}
	directTexts = []string{"a", "b", "ab", "bc", "c", "&", "=", "é", "😀", "1", "12", "3456", "x", "\n", "A", "\x80", "\xe2\x82", "_"}
)

func TestDirect(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	some := func(of []string, most int) string {
		var sb strings.Builder
		for range r.IntN(most + 1) {
			sb.WriteString(of[r.IntN(len(of))])
		}
		return sb.String()
	}
	patterns, matches := 0, 0
	tried := short.Or(20_000, 4000)
	for range tried {
		src := some(directItems, 4)
		re, err := compileRegex(src)
		if err != nil || re.direct == nil {
			continue
		}
		patterns++
		for range 30 {
			if sameAsEngine(t, re, src, some(directTexts, 8)) {
				matches++
			}
		}
	}
	if patterns < tried/4 || matches < tried*5/2 {
		t.Fatalf("%d patterns and %d matches only", patterns, matches)
	}
}

// sameAsEngine compares the first and all matches of s; it reports whether there is one.
func sameAsEngine(t *testing.T, re *regex, src, s string) bool {
	t.Helper()
	loc := make([]int, 2*(re.groups+1))
	found, decided := re.direct.find(s, 0, loc)
	want := re.linear.FindStringSubmatchIndex(s)
	switch {
	case !decided:
		return false
	case found != (want != nil) || found && !slices.Equal(loc, want):
		t.Fatalf("%q on %q: %v %v, want %v", src, s, found, loc, want)
	case !re.empty && re.isLinear(s):
		var all [][]int
		if err := re.all(s, func(loc []int) { all = append(all, slices.Clone(loc)) }); err != nil {
			t.Fatal(err)
		}
		if want := re.linear.FindAllStringSubmatchIndex(s, -1); !slices.EqualFunc(all, want, slices.Equal[[]int]) {
			t.Fatalf("%q on %q: all %v, want %v", src, s, all, want)
		}
	}
	return found
}

func FuzzDirect(f *testing.F) {
	f.Add(`(&|^)channel_id=([^&]*)`, "https://host/item?query=1&channel_id=12&x=3")
	f.Add(`^([^:]+)://([^/]*)(/.*)?$`, "https://host/item")
	f.Add(`([0-9]+)-([0-9]+)`, "a1-b22-333é")
	f.Fuzz(func(t *testing.T, src, s string) {
		if re, err := compileRegex(src); err == nil && re.direct != nil {
			sameAsEngine(t, re, src, s)
		}
	})
}

// A text on which the matcher would go over the same bytes again and again is left to the engine, which finds the same.
func TestDirectGivesUp(t *testing.T) {
	re, err := compileRegex(`([0-9]+)x`)
	if err != nil {
		t.Fatal(err)
	}
	for _, end := range []string{"", "x", "x1x"} {
		s := "1x2x" + strings.Repeat("7", 5000) + end
		var all [][]int
		if err := re.all(s, func(loc []int) { all = append(all, slices.Clone(loc)) }); err != nil {
			t.Fatal(err)
		}
		if want := re.linear.FindAllStringSubmatchIndex(s, -1); !slices.EqualFunc(all, want, slices.Equal[[]int]) {
			t.Fatalf("%d bytes with %q: %v, want %v", len(s), end, all, want)
		}
	}
	if _, decided := re.direct.find(strings.Repeat("7", 5000), 0, make([]int, 4)); decided {
		t.Error("a quadratic search was not given up")
	}
}
