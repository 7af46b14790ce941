package expr

import (
	"fmt"
	"testing"

	"github.com/streamsql/streamsql/sql/types"
)

// A costly operand waits for cheap ones that cannot fail, and for nothing else.
func TestCheapFirst(t *testing.T) {
	cols := map[string]*Column{"s": {Index: 0, Name: "s", T: types.StringType}, "x": {Index: 1, Name: "x", T: types.IntType}}
	for text, want := range map[string]string{
		"REGEXP(s, 'a+b') AND x = 1":                          "[x = 1 REGEXP(s, 'a+b')]",
		"x = 1 AND REGEXP(s, 'a+b')":                          "[x = 1 REGEXP(s, 'a+b')]",
		"REGEXP(s, 'a') AND 1 / x > 2 AND s = 'b'":            "[REGEXP(s, 'a') (1 / x) > 2 s = 'b']",
		"REGEXP(s, 'a') AND LOWER(s) IN ('b', 'c') AND x = 1": "[LOWER(s) IN ('b', 'c') x = 1 REGEXP(s, 'a')]",
		"CHAR_LENGTH(s) > 2 AND REGEXP(s, 'a') AND 1 / x = 1": "[CHAR_LENGTH(s) > 2 REGEXP(s, 'a') (1 / x) = 1]",
		"x = 1 AND s = 'a'":                                   "[x = 1 s = 'a']",
	} {
		if got := fmt.Sprint(newCompiler(Session{}).cheapFirst(Conjuncts(mustParse(t, text, cols)))); got != want {
			t.Errorf("%s\n got  %s\n want %s", text, got, want)
		}
	}
}
