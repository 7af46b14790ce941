package expr

// Goal: looking for a pattern's fixed text first finds the same match as the engine alone.

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

var literalPatterns = []string{
	`(&|^)channel_id=([^&]*)`, `\[ERROR\] (\w+)`, `^abc`, `abc$`, `(x|yy)?abca+`, `[a-z]abc(.)`, `.{2}abc`, `a?b?abc(b|$)`, `(abc)+`, `x*abc`, `é?abc(é)`,
	`abcabd`, `(?:^|a)abc.`, `\babc`, `(a|ab)(c|bcd)abc`, `abc(?=d)`,
}

func TestLiteralSearch(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	pieces := []string{"abc", "a", "b", "c", "x", "yy", "é", "&", "channel_id=", "[ERROR] ", "abd", "\n", "w1"}
	used := 0
	for _, src := range literalPatterns {
		re, err := compileRegex(src)
		if err != nil {
			t.Fatal(src, err)
		}
		if re.search == nil {
			continue
		}
		for range 3000 {
			var sb strings.Builder
			for range r.IntN(7) {
				sb.WriteString(pieces[r.IntN(len(pieces))])
			}
			s := sb.String()
			got, ok := re.search.find(s)
			if !ok {
				continue
			}
			used++
			if want := re.linear.FindStringSubmatchIndex(s); !slices.Equal(got, want) {
				t.Fatalf("%s on %q: %v, want %v", src, s, got, want)
			}
		}
	}
	if used < 20000 {
		t.Fatalf("the search decided only %d times", used)
	}
	for src, want := range map[string]bool{`(&|^)channel_id=([^&]*)`: true, `x*abc`: false, `ab`: false, `a|abcd`: false, `[ab]cde`: true, `\babc`: false} {
		re, err := compileRegex(src)
		if err != nil {
			t.Fatal(err)
		}
		if got := re.search != nil && re.search.before >= 0; got != want {
			t.Errorf("%s: places can be found: %v, want %v", src, got, want)
		}
	}
}

func BenchmarkRegexpExtract(b *testing.B) {
	re, err := compileRegex(`(&|^)channel_id=([^&]*)`)
	if err != nil {
		b.Fatal(err)
	}
	const s = "https://www.nexmark.com/abc/de_f/ghi/item.htm?query=1&channel_id=1234567"
	b.Run("search", func(b *testing.B) {
		for b.Loop() {
			if loc, _ := re.find(s, 0); loc == nil {
				b.Fatal("no match")
			}
		}
	})
	b.Run("engine", func(b *testing.B) {
		for b.Loop() {
			if re.linear.FindStringSubmatchIndex(s) == nil {
				b.Fatal("no match")
			}
		}
	})
}
