package planner

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/streamsql/streamsql/exec"
	"github.com/streamsql/streamsql/sql/diag"
)

// Defaults and what SET does to the options a job is run with.
func TestJobOptions(t *testing.T) {
	c := NewConfig()
	o := c.JobOptions()
	if o.Checkpoints.Interval != 10*time.Second || o.Checkpoints.Timeout != 10*time.Minute || o.Restart.Kind != exec.RestartExponentialDelay ||
		o.Checkpoints.Mode != exec.ExactlyOnce || o.Restart.InitialBackoff != time.Second || o.Restart.Multiplier != 1.5 {
		t.Errorf("defaults: %+v", o)
	}
	for k, v := range map[string]string{
		"execution.checkpointing.interval":                     "3 min",
		"execution.checkpointing.timeout":                      "PT30S",
		"execution.checkpointing.min-pause":                    "500",
		"execution.checkpointing.mode":                         "at_least_once",
		"execution.checkpointing.tolerable-failed-checkpoints": "2",
		"restart-strategy":                                     "fixed-delay",
		"restart-strategy.fixed-delay.attempts":                "7",
		"restart-strategy.fixed-delay.delay":                   "2s",
		"table.exec.state.ttl":                                 "1 h",
		"pipeline.name":                                        "my job",
	} {
		if _, err := c.Set(k, v, posNone); err != nil {
			t.Fatal(err)
		}
	}
	o = c.JobOptions()
	want := exec.CheckpointConfig{Interval: 3 * time.Minute, Timeout: 30 * time.Second, MinPause: 500 * time.Millisecond,
		MaxConcurrent: 1, TolerableFailed: 2, MaxDowntime: time.Minute, Mode: exec.AtLeastOnce}
	if o.Checkpoints != want || c.StateTTL() != time.Hour || o.Name != "my job" || o.Restart.Kind != exec.RestartFixedDelay ||
		o.Restart.Attempts != 7 || o.Restart.Delay != 2*time.Second {
		t.Errorf("got %+v", o)
	}
	c.Reset("restart-strategy") // the old name resets the new key
	if _, err := c.Set("execution.checkpointing.interval", "0", posNone); err != nil {
		t.Fatal(err)
	}
	if o = c.JobOptions(); o.Restart.Kind != exec.RestartNever {
		t.Errorf("without checkpoints: %+v", o.Restart)
	}
	c.Reset("")
	if o = c.JobOptions(); o.Checkpoints.Interval != 10*time.Second || o.Name != "" {
		t.Errorf("after RESET: %+v", o)
	}
}

// A job keeps the settings it was started with.
func TestConfigClone(t *testing.T) {
	c := NewConfig()
	d := c.Clone()
	if _, err := c.Set(keyParallelism, "3", posNone); err != nil {
		t.Fatal(err)
	}
	if c.Parallelism() != 3 || d.IsSet(keyParallelism) {
		t.Errorf("got %d, %v", c.Parallelism(), d.IsSet(keyParallelism))
	}
	if _, err := c.Set(keyTableParallelism, "5", posNone); err != nil || c.Parallelism() != 5 {
		t.Errorf("got %d, %v", c.Parallelism(), err)
	}
}

// Every value that is refused, and why.
func TestConfigRefuses(t *testing.T) {
	for _, c := range []struct {
		key, value string
		code       diag.Code
	}{
		{keyParallelism, "0", diag.Config},
		{keyParallelism, "129", diag.Config},
		{keyParallelism, "-2", diag.Config},
		{keyTimeout, "0", diag.Config},
		{keyMode, "SOMETIMES", diag.Config},
		{keyRuntimeMode, "automatic", diag.Unsupported},
		{keyZone, "EST", diag.Config},
		{keyZone, "Mars/Olympus", diag.Config},
		{keyZone, "GMT+99", diag.Config},
		{keyHints, "yes", diag.Config},
		{keyMaxConcurrent, "0", diag.Config},
		{"restart-strategy.exponential-delay.backoff-multiplier", "0.5", diag.Config},
		{"restart-strategy.exponential-delay.backoff-multiplier", "NaN", diag.Config},
		{"restart-strategy.exponential-delay.attempts-before-reset-backoff", "many", diag.Config},
		{"table.exec.legacy-cast-behaviour", "ENABLED", diag.Unsupported},
		{"table.exec.sink.require-on-conflict", "maybe", diag.Config},
	} {
		conf := NewConfig()
		_, err := conf.Set(c.key, c.value, posNone)
		if diag.CodeOf(err) != c.code || err == nil {
			t.Errorf("%s = %s: got %v", c.key, c.value, err)
		}
		if conf.IsSet(c.key) {
			t.Errorf("%s = %s was stored", c.key, c.value)
		}
	}
}

func TestZones(t *testing.T) {
	for id, want := range map[string]int{"UTC": 0, "GMT": 0, "GMT+8:00": 8 * 3600, "+05:30": 5*3600 + 1800, "UTC-3": -3 * 3600} {
		c := NewConfig()
		if _, err := c.Set(keyZone, id, posNone); err != nil {
			t.Errorf("%s: %v", id, err)
			continue
		}
		if _, got := time.Date(2024, 7, 1, 0, 0, 0, 0, c.Zone()).Zone(); got != want {
			t.Errorf("%s is %d s from UTC, want %d", id, got, want)
		}
	}
}

// docs/config.md has one row per key, with its default and meaning. STREAMSQL_REWRITE=1 writes it.
func TestConfigDoc(t *testing.T) {
	path := filepath.Join("..", "docs", "config.md")
	want := ConfigDoc()
	if os.Getenv("STREAMSQL_REWRITE") != "" {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Error("docs/config.md is not what the settings say: run with STREAMSQL_REWRITE=1")
	}
	if !strings.Contains(want, keyInterval) {
		t.Error("the page misses keys")
	}
}

// SET and RESET say of an unknown key what may have been meant; what was set is reset without a word.
func TestUnknownSetting(t *testing.T) {
	c := NewConfig()
	near := "did you mean '" + keyParallelism + "'?"
	if n := c.Reset("paralelism.default"); !strings.Contains(n, "was not set") || !strings.Contains(n, near) {
		t.Errorf("RESET: %q", n)
	}
	if n, err := c.Set("paralelism.default", "2", posNone); err != nil || !strings.Contains(n, near) {
		t.Errorf("SET: %q, %v", n, err)
	}
	for _, key := range []string{"paralelism.default", keyParallelism, "taskmanager.memory.process.size", ""} {
		if n := c.Reset(key); n != "" {
			t.Errorf("RESET %q: %q", key, n)
		}
	}
}

// TestPresets: a preset puts other defaults in the place of Flink's, and what the session says of a key wins, in whatever
// order the two were said.
func TestPresets(t *testing.T) {
	type row struct {
		set  []string
		want exec.CheckpointConfig
	}
	timeout := 10 * time.Minute
	for _, tc := range []row{
		{nil, exec.CheckpointConfig{Interval: 10 * time.Second, Timeout: timeout, MaxConcurrent: 1}},
		{[]string{keyPreset, "low-latency"}, exec.CheckpointConfig{Interval: 10 * time.Second, MinPause: 5 * time.Second, Timeout: timeout, MaxConcurrent: 1}},
		{[]string{keyPreset, "Large-State"}, exec.CheckpointConfig{Interval: 5 * time.Minute, MinPause: 2 * time.Minute, Timeout: 8 * time.Minute, MaxConcurrent: 2}},
		{[]string{keyPreset, "mixed"}, exec.CheckpointConfig{Interval: time.Minute, MinPause: 30 * time.Second, Timeout: 3 * time.Minute, MaxConcurrent: 1}},
		{[]string{keyInterval, "7 s", keyPreset, "mixed", keyMinPause, "0"}, exec.CheckpointConfig{Interval: 7 * time.Second, Timeout: 3 * time.Minute, MaxConcurrent: 1}},
		{[]string{keyPreset, "mixed", keyPreset, "low-latency"}, exec.CheckpointConfig{Interval: 10 * time.Second, MinPause: 5 * time.Second, Timeout: timeout, MaxConcurrent: 1}},
	} {
		c := NewConfig()
		for i := 0; i < len(tc.set); i += 2 {
			if _, err := c.Set(tc.set[i], tc.set[i+1], posNone); err != nil {
				t.Fatal(err)
			}
		}
		tc.want.MaxDowntime = time.Minute // no preset changes it
		if got := c.Clone().JobOptions().Checkpoints; got != tc.want {
			t.Errorf("%v: %+v, want %+v", tc.set, got, tc.want)
		}
		for _, s := range c.All() {
			if v, _ := c.Get(s.Key); v != s.Value {
				t.Errorf("%v: SET lists %s = %s, the value is %s", tc.set, s.Key, s.Value, v)
			}
		}
		c.Reset(keyPreset)
		if got := c.JobOptions().Checkpoints.Timeout; got != timeout {
			t.Errorf("%v: after RESET the timeout is %s", tc.set, got)
		}
	}
	notice, err := NewConfig().Set(keyPreset, "mixed", posNone)
	if err != nil || notice != "defaults are now interval 60 s, max-concurrent-checkpoints 1, min-pause 30 s, timeout 180 s; settings of their own win" {
		t.Errorf("%q, %v", notice, err)
	}
	if _, err := NewConfig().Set(keyPreset, "fast", posNone); err == nil || !strings.Contains(diag.Render(err, "", ""), "one of large-state, low-latency, mixed is expected") {
		t.Error(err)
	}
}

// TestLifecycleRefusals: values of checkpoints and restarts that cannot be meant.
func TestLifecycleRefusals(t *testing.T) {
	for _, kv := range [][2]string{
		{"restart-strategy.exponential-delay.jitter-factor", "1.5"},
		{"restart-strategy.exponential-delay.backoff-multiplier", "0.5"},
		{"restart-strategy.exponential-delay.attempts-before-reset-backoff", "0"},
		{"restart-strategy.fixed-delay.attempts", "-1"},
		{"restart-strategy.failure-rate.max-failures-per-interval", "many"},
		{keyMaxConcurrent, "0"}, {keyTolerable, "-1"}, {keyTimeout, "0"}, {keyRestart, "sometimes"},
	} {
		if _, err := NewConfig().Set(kv[0], kv[1], posNone); diag.CodeOf(err) != diag.Config {
			t.Errorf("%s = %s: %v", kv[0], kv[1], err)
		}
	}
	c := NewConfig()
	for _, kv := range [][2]string{{"restart-strategy.exponential-delay.initial-backoff", "2 min"}} {
		if _, err := c.Set(kv[0], kv[1], posNone); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.checkLifecycle(); err == nil || !strings.Contains(diag.Render(err, "", ""), "SET 'restart-strategy.exponential-delay.max-backoff' = '2 min'") {
		t.Error(err)
	}
}
