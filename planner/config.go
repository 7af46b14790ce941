package planner

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/connectors"
	"github.com/streamsql/streamsql/exec"
	"github.com/streamsql/streamsql/sql/diag"
)

// Config is the settings of a session: what SET and -D wrote over the defaults. It is safe for concurrent use.
type Config struct {
	mu     sync.RWMutex
	values map[string]string
}

// NewConfig is a session without settings of its own.
func NewConfig() *Config { return &Config{values: map[string]string{}} }

// Clone is an independent copy: the settings a job starts with.
func (c *Config) Clone() *Config {
	c.mu.RLock()
	defer c.mu.RUnlock()
	n := NewConfig()
	for k, v := range c.values {
		n.values[k] = v
	}
	return n
}

// Set stores key = value. An unknown or irrelevant key is kept with a notice (files that also run on a Flink cluster
// stay portable); a bad value of a known key, or a key whose meaning we do not implement, is an error at pos.
func (c *Config) Set(key, value string, pos diag.Pos) (notice string, err error) {
	key, notice = canonicalKey(key)
	k, known := settings[key]
	switch {
	case !known && irrelevant(key):
		notice = fmt.Sprintf("'%s' has no effect here: %s", key, "it configures a Flink cluster or an engine streamsql does not have")
	case !known:
		notice = fmt.Sprintf("unknown setting '%s' is kept but has no effect", key) + didYouMean(key)
	default:
		if err := k.check(key, value, pos); err != nil {
			return "", err
		}
		if k.notice != "" {
			notice = fmt.Sprintf("'%s' has no effect here: %s", key, k.notice)
		}
	}
	if key == keyPreset && value != "" {
		notice = "defaults are now " + presetText(strings.ToLower(strings.TrimSpace(value))) + "; settings of their own win"
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.values[key] = value
	return notice, nil
}

func didYouMean(key string) string {
	if near := diag.Nearest(key, settingKeys()); near != "" {
		return fmt.Sprintf("; did you mean '%s'?", near)
	}
	return ""
}

// Reset removes the session's value of key; "" removes all. The notice says that there is nothing by this name to reset.
func (c *Config) Reset(key string) (notice string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if key == "" {
		clear(c.values)
		return ""
	}
	key, notice = canonicalKey(key)
	_, set := c.values[key]
	if _, known := settings[key]; !set && !known && !irrelevant(key) {
		notice = fmt.Sprintf("unknown setting '%s' was not set", key) + didYouMean(key)
	}
	delete(c.values, key)
	return notice
}

// Get is the effective value of key: the session's, else the preset's, else the default. ok is false for unknown keys that are not set.
func (c *Config) Get(key string) (value string, ok bool) {
	key, _ = canonicalKey(key)
	c.mu.RLock()
	defer c.mu.RUnlock()
	if v, ok := c.values[key]; ok {
		return v, true
	}
	_, ok = settings[key]
	return c.defaultOf(key), ok
}

// IsSet reports that the session gave key a value.
func (c *Config) IsSet(key string) bool {
	key, _ = canonicalKey(key)
	c.mu.RLock()
	defer c.mu.RUnlock()
	_, ok := c.values[key]
	return ok
}

// maskedValue is shown in place of secrets, as Flink does.
const maskedValue = "******"

// Setting is a row of SET without arguments.
type Setting struct {
	Key, Value, Default, Doc string
	Changed                  bool
}

// All lists every known setting and every other key that is set, in key order.
func (c *Config) All() []Setting {
	c.mu.RLock()
	defer c.mu.RUnlock()
	var out []Setting
	for k, s := range settings {
		v, set := c.values[k]
		if !set {
			v = c.defaultOf(k)
		} else if s.secret && v != "" {
			v = maskedValue
		}
		out = append(out, Setting{Key: k, Value: v, Default: s.def, Doc: s.doc, Changed: set})
	}
	for k, v := range c.values {
		if _, known := settings[k]; !known {
			out = append(out, Setting{Key: k, Value: v, Changed: true})
		}
	}
	slices.SortFunc(out, func(a, b Setting) int { return strings.Compare(a.Key, b.Key) })
	return out
}

// Duration is the value of a duration setting; 0 when it is unset and has no default.
func (c *Config) Duration(key string) time.Duration {
	v, _ := c.Get(key)
	d, _ := connectors.ParseDuration(v)
	return d
}

// Int is the value of an integer setting.
func (c *Config) Int(key string) int {
	v, _ := c.Get(key)
	n, _ := strconv.Atoi(strings.TrimSpace(v))
	return n
}

// Bool is the value of a boolean setting.
func (c *Config) Bool(key string) bool {
	v, _ := c.Get(key)
	return strings.EqualFold(strings.TrimSpace(v), "true")
}

// Enum is the value of an enumerated setting, in its documented spelling.
func (c *Config) Enum(key string) string {
	v, _ := c.Get(key)
	for _, w := range settings[key].values {
		if strings.EqualFold(w, v) {
			return w
		}
	}
	return v
}

func (c *Config) float(key string) float64 {
	v, _ := c.Get(key)
	f, _ := strconv.ParseFloat(strings.TrimSpace(v), 64)
	return f
}

// Parallelism is the number of subtasks of an operator: table.exec.resource.default-parallelism when positive, else
// parallelism.default, else the number of CPUs.
func (c *Config) Parallelism() int {
	if n := c.Int(keyTableParallelism); n > 0 {
		return n
	}
	if n := c.Int(keyParallelism); n > 0 {
		return n
	}
	return min(runtime.GOMAXPROCS(0), maxParallelism)
}

// Zone is table.local-time-zone; "default" is the zone of the machine.
func (c *Config) Zone() *time.Location {
	v, _ := c.Get(keyZone)
	z, err := parseZone(v)
	if err != nil {
		return time.Local
	}
	return z
}

// Batch reports execution.runtime-mode = batch.
func (c *Config) Batch() bool { return c.Enum(keyRuntimeMode) == "batch" }

// StateTTL is table.exec.state.ttl; 0 keeps state forever.
func (c *Config) StateTTL() time.Duration { return c.Duration(keyStateTTL) }

// JobOptions are the settings a job is run with. Name is pipeline.name, "" when not set: the caller takes Plan.Name.
func (c *Config) JobOptions() exec.JobOptions {
	name, _ := c.Get(keyPipelineName)
	o := exec.JobOptions{
		Name: name,
		Checkpoints: exec.CheckpointConfig{
			Interval:        c.Duration(keyInterval),
			Timeout:         c.Duration(keyTimeout),
			MinPause:        c.Duration(keyMinPause),
			MaxConcurrent:   c.Int(keyMaxConcurrent),
			TolerableFailed: c.Int(keyTolerable),
			MaxDowntime:     c.Duration(keyMaxDowntime),
			Unaligned:       c.Bool(keyUnaligned),
			AlignedTimeout:  c.Duration(keyAlignedTimeout),
		},
		Restart: c.restart(),
		Disk:    c.disk(),
	}
	if c.Enum(keyOnDegraded) == checkpoint.DegradedRepeat.String() {
		o.Checkpoints.OnDegraded = checkpoint.DegradedRepeat
	}
	if c.Enum(keyMode) == "AT_LEAST_ONCE" {
		o.Checkpoints.Mode = exec.AtLeastOnce
	}
	return o
}

// Recovery is what the settings say of where a job starts and where its savepoints go.
type Recovery struct {
	Path         string // execution.state-recovery.path
	AllowDropped bool
	AllowRewind  bool
	SavepointDir string // execution.checkpointing.savepoint-dir
}

// Recovery reads the settings of recovery.
func (c *Config) Recovery() Recovery {
	path, _ := c.Get(keyRestorePath)
	dir, _ := c.Get(keySavepointDir)
	return Recovery{Path: path, AllowDropped: c.Bool(keyIgnoreState), AllowRewind: c.Bool(keyAllowRewind), SavepointDir: localPath(dir)}
}

// Storage is where a job's checkpoints count: in the state directory (the zero value), in a directory, or in a bucket.
type Storage struct {
	Dir    string // of a file: URI
	Bucket string // of an s3: URI
	Path   string // below the bucket, without slashes at its ends
	// Endpoint, Region, AccessKey, SecretKey and PathStyle are the settings s3.*.
	Endpoint, Region, AccessKey, SecretKey string
	PathStyle                              bool
}

// Kept reports that checkpoints count elsewhere than in the state directory.
func (s Storage) Kept() bool { return s.Dir != "" || s.Bucket != "" }

// Storage reads execution.checkpointing.dir and what belongs to it.
func (c *Config) Storage() Storage {
	text, _ := c.Get(keyCheckpointDir)
	s, _ := parseStorage(text) // Set has checked it
	s.Endpoint, _ = c.Get(keyS3Endpoint)
	s.Region, _ = c.Get(keyS3Region)
	s.AccessKey, _ = c.Get(keyS3AccessKey)
	s.SecretKey, _ = c.Get(keyS3SecretKey)
	s.PathStyle = c.Bool(keyS3PathStyle)
	return s
}

// parseStorage reads a URI of checkpoint storage. Flink's schemes s3a and s3p name the same stores by other clients.
func parseStorage(text string) (s Storage, err error) {
	scheme, rest, ok := strings.Cut(text, ":")
	switch {
	case text == "":
		return s, nil
	case !ok || strings.ContainsAny(scheme, "/\\"):
		s.Dir = text
		return s, nil
	case scheme == "file":
		if s.Dir = localPath(text); !strings.HasPrefix(s.Dir, "/") {
			err = errors.New("a file URI has a path from the root")
		}
		return s, err
	case scheme != "s3" && scheme != "s3a" && scheme != "s3p":
		return s, fmt.Errorf("checkpoint storage of scheme %s is not supported", scheme)
	}
	s.Bucket, s.Path, _ = strings.Cut(strings.TrimPrefix(rest, "//"), "/")
	if s.Path = strings.Trim(s.Path, "/"); s.Bucket == "" || !strings.HasPrefix(rest, "//") {
		err = errors.New("a bucket is expected after s3://")
	}
	return s, err
}

// localPath is the path of a file: URI, as Flink's directories are given.
func localPath(dir string) string {
	if rest, ok := strings.CutPrefix(dir, "file://"); ok {
		return rest
	}
	return strings.TrimPrefix(dir, "file:")
}

// restart is the restart strategy. Without restart-strategy.type it is exponential-delay with checkpoints and none
// without, as in Flink.
func (c *Config) restart() exec.RestartStrategy {
	kind := exec.RestartExponentialDelay
	switch strings.ToLower(c.Enum(keyRestart)) {
	case "none", "off", "disable":
		kind = exec.RestartNever
	case "fixed-delay", "fixeddelay":
		kind = exec.RestartFixedDelay
	case "failure-rate", "failurerate":
		kind = exec.RestartFailureRate
	case "":
		if c.Duration(keyInterval) == 0 {
			kind = exec.RestartNever
		}
	}
	s := exec.DefaultRestart(kind)
	s.MaxFailures = c.Int("restart-strategy.failure-rate.max-failures-per-interval")
	s.RateInterval = c.Duration("restart-strategy.failure-rate.failure-rate-interval")
	if kind == exec.RestartFailureRate {
		s.Delay = c.Duration("restart-strategy.failure-rate.delay")
	} else {
		s.Attempts = c.Int("restart-strategy.fixed-delay.attempts")
		s.Delay = c.Duration("restart-strategy.fixed-delay.delay")
	}
	s.InitialBackoff = c.Duration("restart-strategy.exponential-delay.initial-backoff")
	s.MaxBackoff = c.Duration("restart-strategy.exponential-delay.max-backoff")
	s.Multiplier = c.float("restart-strategy.exponential-delay.backoff-multiplier")
	s.Jitter = c.float("restart-strategy.exponential-delay.jitter-factor")
	s.ResetAfter = c.Duration("restart-strategy.exponential-delay.reset-backoff-threshold")
	if v, _ := c.Get("restart-strategy.exponential-delay.attempts-before-reset-backoff"); v != "infinite" {
		s.AttemptsBeforeReset = c.Int("restart-strategy.exponential-delay.attempts-before-reset-backoff")
	}
	return s
}
