package planner

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/streamsql/streamsql/sql/diag"
)

// keyPreset names a set of defaults.
const keyPreset = "streamsql.preset"

// presets are the values that 'streamsql.preset' puts in the place of the defaults. What SET or -D says of a key wins.
//
// The timeout of large-state lets a transaction outlive interval, checkpoint and a minute for the restart within a
// Kafka broker's usual transaction.max.timeout.ms of 15 minutes.
var presets = map[string]map[string]string{
	"low-latency": {keyInterval: "10 s", keyMinPause: "5 s", keyMaxConcurrent: "1"},
	"large-state": {keyInterval: "300 s", keyMinPause: "120 s", keyMaxConcurrent: "2", keyTimeout: "480 s"},
	"mixed":       {keyInterval: "60 s", keyMinPause: "30 s", keyMaxConcurrent: "1", keyTimeout: "180 s"},
}

func init() {
	settings[keyPreset] = setting{def: "", values: append([]string{""}, slices.Sorted(maps.Keys(presets))...),
		doc: "other defaults for checkpoints, which settings of their own override: " + presetDoc()}
}

// presetDoc lists the presets for the page of settings.
func presetDoc() string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(presets)) {
		parts = append(parts, name+" = "+presetText(name))
	}
	return strings.Join(parts, "; ")
}

// presetText is what a preset sets, by the last words of the keys.
func presetText(name string) string {
	var parts []string
	for _, k := range slices.Sorted(maps.Keys(presets[name])) {
		parts = append(parts, strings.TrimPrefix(k, "execution.checkpointing.")+" "+presets[name][k])
	}
	return strings.Join(parts, ", ")
}

// presetValue is what the session's preset says of key. The caller holds the lock.
func (c *Config) presetValue(key string) (string, bool) {
	name, ok := c.values[keyPreset]
	if !ok {
		return "", false
	}
	v, ok := presets[strings.ToLower(strings.TrimSpace(name))][key]
	return v, ok
}

// defaultOf is the value of a key that the session does not set. The caller holds the lock.
func (c *Config) defaultOf(key string) string {
	if v, ok := c.presetValue(key); ok {
		return v
	}
	if v, ok := c.profileValue(key); ok {
		return v
	}
	return settings[key].def
}

// checkpointKeys are what ConfigText shows of the checkpoints.
var checkpointKeys = []string{keyMode, keyInterval, keyTimeout, keyMinPause, keyMaxConcurrent, keyTolerable}

// ConfigText is how the job takes checkpoints and from where that comes, "" without a preset: everything is then a default
// or said in the session itself.
func (plan *Plan) ConfigText() string {
	c := plan.conf
	name := c.Enum(keyPreset)
	if name == "" {
		return ""
	}
	return c.origins(checkpointKeys, "preset "+name, presets[name]) + fmt.Sprintf("  %s = %s\n", keyRestart, c.restart().Kind)
}

// origins are the values of keys, a line each, and from where they come; named are those of a set of defaults.
func (c *Config) origins(keys []string, name string, named map[string]string) string {
	var sb strings.Builder
	for _, k := range keys {
		v, _ := c.Get(k)
		if v == "" {
			v = "(unset)"
		}
		from := "default"
		if _, ok := named[k]; ok {
			from = name
		}
		if c.IsSet(k) {
			from = "set"
		}
		fmt.Fprintf(&sb, "  %s = %s (%s)\n", k, v, from)
	}
	return sb.String()
}

// checkLifecycle refuses settings of checkpoints and restarts that contradict each other.
func (c *Config) checkLifecycle() error {
	const first, most = "restart-strategy.exponential-delay.initial-backoff", "restart-strategy.exponential-delay.max-backoff"
	r := c.restart()
	if r.InitialBackoff > r.MaxBackoff && (c.IsSet(first) || c.IsSet(most)) {
		return diag.New(diag.Config, diag.Pos{}, "'%s' is longer than '%s'", first, most).
			WithDetail("%s > %s", shortDuration(r.InitialBackoff), shortDuration(r.MaxBackoff)).
			WithHint("SET '%s' = '%s'", most, shortDuration(r.InitialBackoff))
	}
	return nil
}
