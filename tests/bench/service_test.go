package bench

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// full says whether the measurement is run at full size, and where its figures go.
func full() (dir string, ok bool) {
	dir = os.Getenv("STREAMSQL_BENCH")
	return dir, dir != ""
}

// table is a part of the report.
type table struct {
	title string
	head  []string
	rows  [][]string
}

func (tb *table) add(cells ...any) {
	row := make([]string, len(cells))
	for i, c := range cells {
		row[i] = fmt.Sprint(c)
	}
	tb.rows = append(tb.rows, row)
}

func (tb *table) String() string {
	var s strings.Builder
	fmt.Fprintf(&s, "**%s**\n\n| %s |\n|%s\n", tb.title, strings.Join(tb.head, " | "), strings.Repeat("---|", len(tb.head)))
	for _, r := range tb.rows {
		fmt.Fprintf(&s, "| %s |\n", strings.Join(r, " | "))
	}
	return s.String()
}

// report logs the table, and at full size writes it and its figures as files of a name.
func (tb *table) report(t *testing.T, file string, figures any) {
	t.Helper()
	t.Logf("\n%s", tb)
	tb.write(t, file, figures)
}

// write writes the files of report at full size.
func (tb *table) write(t *testing.T, file string, figures any) {
	t.Helper()
	dir, ok := full()
	if !ok || t.Failed() {
		return
	}
	data, err := json.MarshalIndent(figures, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	for name, b := range map[string][]byte{file + ".md": []byte(tb.String()), file + ".json": append(data, '\n')} {
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// durations are samples of one thing.
type durations []time.Duration

// quantile is the smallest sample that is no less than the share q of them.
func (d durations) quantile(q float64) time.Duration {
	if len(d) == 0 {
		return 0
	}
	s := slices.Sorted(slices.Values(d))
	return s[min(int(q*float64(len(s))), len(s)-1)]
}

// ms is a duration in milliseconds with the digits that mean something.
func ms(d time.Duration) string {
	if d < 10*time.Millisecond {
		return fmt.Sprintf("%.1f ms", float64(d)/1e6)
	}
	return fmt.Sprintf("%d ms", d.Milliseconds())
}

// sizeFromEnv is a number from the environment.
func sizeFromEnv(t *testing.T, name string, otherwise int64) int64 {
	t.Helper()
	v := os.Getenv(name)
	if v == "" {
		return otherwise
	}
	n, err := strconv.ParseInt(v, 10, 64)
	if err != nil || n < 1 {
		t.Fatalf("%s = %q: not a positive number", name, v)
	}
	return n
}

// bytesOf is a size such as 256mb or 4gb in bytes.
func bytesOf(t *testing.T, size string) int64 {
	t.Helper()
	for unit, shift := range map[string]int{"mb": 20, "gb": 30} {
		if digits, ok := strings.CutSuffix(size, unit); ok {
			n, err := strconv.ParseInt(digits, 10, 64)
			if err == nil {
				return n << shift
			}
		}
	}
	t.Fatalf("%q is no size", size)
	return 0
}
