package short

import "testing"

// Or is full, such as a number of seeds, or few under -short.
func Or(full, few int) int {
	if testing.Short() {
		return few
	}
	return full
}

// OneGoroutine skips under -short a test in which nothing races and which has no seeds that could be fewer.
func OneGoroutine(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("one goroutine and many rows: run without -short")
	}
}
