package sql

import (
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/streamsql/streamsql/sql/diag"
)

// corpus is every input of the golden files.
func corpus(t testing.TB) []string {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no golden files: %v", err)
	}
	var out []string
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, block := range strings.Split(string(b), "\n\n") {
			cmd, rest, _ := strings.Cut(block, "\n")
			if strings.HasPrefix(cmd, "#") {
				cmd, rest, _ = strings.Cut(rest, "\n")
			}
			in, _, _ := strings.Cut(rest, "\n----")
			switch cmd {
			case "expr":
				for _, line := range strings.Split(in, "\n") {
					out = append(out, "SELECT "+line)
				}
			case "error":
				out = append(out, strings.Split(in, "\n---\n")...)
			case "ast", "format":
				out = append(out, in)
			}
		}
	}
	return out
}

// checkScript demands of any text: no panic, no internal error, places inside the text, and that what parses can be
// formatted and parsed to the same tree.
func checkScript(t testing.TB, src string) {
	s := NewScript(src)
	for {
		st, err := s.Next()
		if err != nil {
			checkError(t, src, err)
			continue
		}
		if st == nil {
			break
		}
		if src[st.Pos.Offset:st.Pos.Offset+len(st.Text)] != st.Text {
			t.Errorf("text %q is not at %s of %q", st.Text, st.Pos, src)
		}
		checkRoundTrip(t, st.Stmt)
	}
	SplitComplete(src)
}

func FuzzParse(f *testing.F) {
	for _, src := range corpus(f) {
		f.Add(src)
	}
	f.Fuzz(func(t *testing.T, src string) { checkScript(t, src) })
}

// TestMutants parses statements whose tokens were dropped, doubled, swapped or taken from others.
func TestMutants(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	all := corpus(t)
	var words [][]string
	for _, src := range all {
		var ws []string
		for _, tok := range tokens(src) {
			ws = append(ws, src[tok.pos.Offset:tok.end])
		}
		words = append(words, ws)
	}
	parsed := 0
	const rounds = 20000
	for range rounds {
		ws := append([]string(nil), words[r.IntN(len(words))]...)
		for range 1 + r.IntN(3) {
			i := r.IntN(len(ws))
			other := words[r.IntN(len(words))]
			switch r.IntN(4) {
			case 0:
				ws[i] = ""
			case 1:
				ws[i] += " " + ws[i]
			case 2:
				j := r.IntN(len(ws))
				ws[i], ws[j] = ws[j], ws[i]
			default:
				ws[i] = other[r.IntN(len(other))]
			}
		}
		src := strings.Join(ws, " ")
		checkScript(t, src)
		if _, err := ParseScript(src); err == nil {
			parsed++
		} else if e := new(diag.Error); !errors.As(err, &e) || e.Message == "" {
			t.Errorf("%q: error %v", src, err)
		}
		if t.Failed() {
			break
		}
	}
	if parsed < rounds/50 {
		t.Errorf("only %d of %d mutants parse: the test has become blind", parsed, rounds)
	}
}
