package harness

import (
	"os"
	"strconv"
	"testing"
	"time"
)

// CrashesEnv names the environment variable with the number of kills that a crash test should survive; make crash sets it.
const CrashesEnv = "STREAMSQL_TEST_CRASHES"

// Crashes returns how often a test that kills the job at random should do so: $STREAMSQL_TEST_CRASHES, or usual.
func Crashes(t testing.TB, usual int) int {
	t.Helper()
	return number(t, CrashesEnv, usual)
}

// ServerCrashesEnv names the environment variable with the number of times that a test kills a server; make crash-servers sets it.
const ServerCrashesEnv = "STREAMSQL_TEST_SERVER_CRASHES"

// ServerCrashes returns how often a test that kills a server below a live job should do so: $STREAMSQL_TEST_SERVER_CRASHES,
// or usual.
func ServerCrashes(t testing.TB, usual int) int {
	t.Helper()
	return number(t, ServerCrashesEnv, usual)
}

// DayEnv names the environment variable with the number of the sample that Sample takes, instead of the day's.
const DayEnv = "STREAMSQL_TEST_DAY"

// Day returns the number of the day, or $STREAMSQL_TEST_DAY: what a run tries of more than it has time for.
func Day(t testing.TB) int {
	t.Helper()
	return number(t, DayEnv, int(time.Now().Unix()/86400))
}

// Sample returns n of the cases, other ones every day until all had their turn, and logs how to get the same ones again.
// Under make crash it returns all.
func Sample[T any](t testing.TB, n int, all []T) []T {
	t.Helper()
	if Crashes(t, 0) > 0 || n >= len(all) {
		return all
	}
	day, out := Day(t), make([]T, n)
	for i := range out {
		out[i] = all[(day*n+i)%len(all)]
	}
	t.Logf("%d of %d cases ($%s=%d; make crash runs all): %v", n, len(all), DayEnv, day, out)
	return out
}

// number is the positive number in an environment variable, or usual.
func number(t testing.TB, env string, usual int) int {
	t.Helper()
	s := os.Getenv(env)
	if s == "" {
		return usual
	}
	n, err := strconv.Atoi(s)
	if err != nil || n < 1 {
		t.Fatalf("harness: $%s is %q, want a number from 1", env, s)
	}
	return n
}
