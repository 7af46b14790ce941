package diag

import (
	"strings"
	"testing"
)

// What Shorten returns is no longer than asked, but for the sign that something is missing, and no character is cut.
func TestShorten(t *testing.T) {
	for _, c := range []struct {
		s    string
		most int
		want string
	}{
		{"", 3, ""}, {"abc", 3, "abc"}, {"abcd", 3, "abc…"},
		{"aéb", 2, "a…"}, {"a😀", 4, "a…"}, {"😀", 3, "…"}, {"é", 1, "…"}, {"é", 2, "é"},
		{"ab\x80\x80\x80\x80\x80\x80", 6, "ab…"}, // no text at all: something is left all the same
		{"\x80\x80\x80\x80\x80\x80\x80\x80", 6, "\x80\x80…"},
	} {
		if got := Shorten(c.s, c.most); got != c.want {
			t.Errorf("Shorten(%q, %d) = %q, want %q", c.s, c.most, got, c.want)
		}
	}
}

// A text of the user's that is quoted does not bury the message; lists in details are left whole, and so are the caller's arguments.
func TestLongTextsAreShortened(t *testing.T) {
	long := strings.Repeat("x", 1<<20)
	args := []any{long, 7}
	e := New(Semantic, Pos{}, "'%s' is not one of the %d", args...).WithDetail("%s", long).WithHint("write '%s'", long)
	for _, text := range []string{e.Message, e.Detail, e.Hint} {
		if len(text) > 10<<10 || !strings.Contains(text, "xx…") {
			t.Errorf("%d bytes: %.20s", len(text), text)
		}
	}
	if !strings.HasSuffix(e.Message, "…' is not one of the 7") || args[0] != any(long) {
		t.Errorf("%q, and %d bytes of the caller's", e.Message, len(args[0].(string)))
	}
	if list := strings.Repeat("name, ", 500); New(Semantic, Pos{}, "x").WithDetail("its columns are %s", list).Detail != "its columns are "+list {
		t.Error("a list of columns is cut")
	}
}
