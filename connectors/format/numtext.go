package format

import (
	"strconv"

	"github.com/streamsql/streamsql/sql/types"
)

func floatBits(t types.Type) int {
	if t.Kind == types.Float {
		return 32
	}
	return 64
}

// parseJavaInt is Long.parseLong with a range: an optional sign and digits, nothing else. CAST reads more (types.ParseInt).
func parseJavaInt(s string, lo, hi int64) (int64, bool) {
	v, err := strconv.ParseInt(s, 10, 64)
	return v, err == nil && v >= lo && v <= hi
}

// trimJava is String.trim: everything up to and including the space.
func trimJava(s string) string {
	for len(s) > 0 && s[0] <= ' ' {
		s = s[1:]
	}
	for len(s) > 0 && s[len(s)-1] <= ' ' {
		s = s[:len(s)-1]
	}
	return s
}
