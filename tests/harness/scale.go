package harness

import (
	"os"
	"strconv"
	"testing"
)

// CrashesEnv names the environment variable with the number of kills that a crash test should survive; make crash sets it.
const CrashesEnv = "STREAMSQL_TEST_CRASHES"

// Crashes returns how often a test that kills the job at random should do so: $STREAMSQL_TEST_CRASHES, or usual.
func Crashes(t testing.TB, usual int) int {
	t.Helper()
	s := os.Getenv(CrashesEnv)
	if s == "" {
		return usual
	}
	n, err := strconv.Atoi(s)
	if err != nil || n < 1 {
		t.Fatalf("harness: $%s is %q, want a number of crashes", CrashesEnv, s)
	}
	return n
}
