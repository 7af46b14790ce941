package regress

import (
	"os"
	"path/filepath"
	"testing"
)

// A query that is left in the middle of very much output, here of millions of windows that one row is in, ends. One that
// did not notice would run for hours.
func TestStopWhileFiring(t *testing.T) {
	file := filepath.Join(t.TempDir(), "rows.csv")
	if err := os.WriteFile(file, []byte("1,2024-01-01 00:00:00\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, query := range []string{
		`SELECT window_end, COUNT(*) FROM TABLE(HOP(TABLE t, DESCRIPTOR(ts), INTERVAL '0.001' SECOND, INTERVAL '1' DAY)) GROUP BY window_start, window_end`,
		`SELECT window_end, v FROM TABLE(HOP(TABLE t, DESCRIPTOR(ts), INTERVAL '0.001' SECOND, INTERVAL '1' DAY))`,
	} {
		e := open(t)
		s := e.Script(`CREATE TABLE t (v INT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts) WITH ('connector' = 'filesystem', 'path' = '` + file + `', 'format' = 'csv');
			` + query + `;`)
		if _, err := s.Next(t.Context()); err != nil {
			t.Fatal(err)
		}
		res, err := s.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		rows := 0
		for _, err := range res.Rows() {
			if err != nil {
				t.Fatal(err)
			}
			if rows++; rows == 10 {
				break
			}
		}
		if rows != 10 {
			t.Errorf("%d rows of %s", rows, query)
		}
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
