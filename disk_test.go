package streamsql_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/streamsql/streamsql"
)

// Goal: a profile of the disk, and a setting of its own beside it, arrive where they matter. Method: a real job with more keys
// than memory, until rows are on disk; Pebble writes the options that it was opened with into a file of its own, which is read.
// EXPLAIN says the same.
func TestDiskProfiles(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	for _, c := range []struct {
		name    string
		set     []string
		pebble  []string // lines of its options
		explain string   // "" = says nothing
		cache   int64    // bytes taken of the memory at least, as a cache of that size was asked for
	}{
		{"none", nil, []string{"max_open_files=512", "block_size=4096", "target_file_size=2097152"}, "", 0},
		{"spinning", []string{`SET 'state.backend.rocksdb.predefined-options' = 'SPINNING_DISK_OPTIMIZED'`},
			[]string{"max_open_files=4096", "block_size=32768", "target_file_size=67108864"},
			"state.backend.rocksdb.block.blocksize = 32 kb (profile SPINNING_DISK_OPTIMIZED)", 0},
		{"spinning, much memory, smaller blocks and cache", []string{`SET 'state.backend.rocksdb.block.blocksize' = '16 kb'`,
			`SET 'state.backend.rocksdb.predefined-options' = 'spinning_disk_optimized_high_mem'`, `SET 'state.backend.rocksdb.block.cache-size' = '150 kb'`},
			[]string{"max_open_files=4096", "block_size=16384", "target_file_size=268435456", "cache_size=153600"},
			"state.backend.rocksdb.block.blocksize = 16 kb (set)", 150 << 10},
		{"solid state", []string{`SET 'state.backend.rocksdb.predefined-options' = 'FLASH_SSD_OPTIMIZED'`, `SET 'state.backend.rocksdb.files.open' = '100'`},
			[]string{"max_open_files=100", "block_size=4096"}, "state.backend.rocksdb.files.open = 100 (set)", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			eng, err := streamsql.Open(dir, &streamsql.Options{Memory: 512 << 10, Settings: map[string]string{"parallelism.default": "1"}})
			if err != nil {
				t.Fatal(err)
			}
			defer eng.Close()
			do := func(text string) *streamsql.Result {
				t.Helper()
				res, err := eng.Exec(ctx, text)
				if err != nil {
					t.Fatal(err)
				}
				return res
			}
			for _, s := range c.set {
				do(s)
			}
			do(`CREATE TABLE g (id BIGINT) WITH ('connector' = 'datagen', 'fields.id.kind' = 'sequence', 'fields.id.start' = '1', 'fields.id.end' = '1000000000')`)
			do(`CREATE TABLE b (id BIGINT, n BIGINT) WITH ('connector' = 'blackhole')`)
			const insert = `INSERT INTO b SELECT id, COUNT(*) FROM g GROUP BY id`
			plans, err := eng.Explain(insert)
			if err != nil {
				t.Fatal(err)
			}
			if text := strings.Join(plans, "\n"); !strings.Contains(text, c.explain) || c.explain == "" && strings.Contains(text, "State on disk") {
				t.Errorf("EXPLAIN does not say %q:\n%s", c.explain, text)
			}
			job := do(insert).Job
			var files []string
			for len(files) == 0 {
				if ctx.Err() != nil {
					t.Fatalf("no row came to disk: %+v", job.Status().Store)
				}
				time.Sleep(5 * time.Millisecond)
				if files, err = filepath.Glob(filepath.Join(dir, "jobs", "*", "local", "*", "*", "db", "OPTIONS-*")); err != nil {
					t.Fatal(err)
				}
				if job.Status().Store.Databases == 0 {
					files = nil // it is written before the Pebble is ready
				}
			}
			text, err := os.ReadFile(files[0])
			if err != nil {
				t.Fatal(err)
			}
			for _, want := range c.pebble {
				if !strings.Contains(string(text), "  "+want+"\n") {
					t.Errorf("Pebble was not opened with %s:\n%s", want, text)
				}
			}
			if used := job.Status().Store.MemoryUsed; used < c.cache {
				t.Errorf("a block cache of %d bytes takes %d of the memory", c.cache, used)
			}
		})
	}
	eng, err := streamsql.Open("", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer eng.Close()
	for key, value := range map[string]string{"predefined-options": "FAST", "block.blocksize": "3 furlongs", "block.cache-size": "1 kb", "files.open": "-1"} {
		if _, err := eng.Exec(ctx, fmt.Sprintf(`SET 'state.backend.rocksdb.%s' = '%s'`, key, value)); err == nil {
			t.Errorf("%s = %s is accepted", key, value)
		}
	}
}
