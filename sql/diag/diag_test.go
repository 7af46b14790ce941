package diag

import "testing"

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
