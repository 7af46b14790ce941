package planner

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/connectors"
	"github.com/streamsql/streamsql/sql/diag"
)

// The keys the planner and the runtime read.
const (
	keyRuntimeMode      = "execution.runtime-mode"
	keyInterval         = "execution.checkpointing.interval"
	keyMode             = "execution.checkpointing.mode"
	keyTimeout          = "execution.checkpointing.timeout"
	keyMinPause         = "execution.checkpointing.min-pause"
	keyMaxConcurrent    = "execution.checkpointing.max-concurrent-checkpoints"
	keyUnaligned        = "execution.checkpointing.unaligned.enabled"
	keyAlignedTimeout   = "execution.checkpointing.aligned-checkpoint-timeout"
	keyTolerable        = "execution.checkpointing.tolerable-failed-checkpoints"
	keyRestart          = "restart-strategy.type"
	keyParallelism      = "parallelism.default"
	keyTableParallelism = "table.exec.resource.default-parallelism"
	keyPipelineName     = "pipeline.name"
	keyAutoWatermark    = "pipeline.auto-watermark-interval"
	keyStateTTL         = "table.exec.state.ttl"
	keyIntervalCleanup  = "table.exec.interval-join.min-cleanup-interval"
	keyIdleTimeout      = "table.exec.source.idle-timeout"
	keyCDCDuplicate     = "table.exec.source.cdc-events-duplicate"
	keyNotNull          = "table.exec.sink.not-null-enforcer"
	keyTypeLength       = "table.exec.sink.type-length-enforcer"
	keyMaterialize      = "table.exec.sink.upsert-materialize"
	keyRowtimeInserter  = "table.exec.sink.rowtime-inserter"
	keyZone             = "table.local-time-zone"
	keyHints            = "table.dynamic-table-options.enabled"
	keyOnConflict       = "table.exec.sink.require-on-conflict"
	keyNonDeterministic = "table.optimizer.non-deterministic-update.strategy"
	keyMiniBatch        = "table.exec.mini-batch.enabled"
	keyMiniSize         = "table.exec.mini-batch.size"
	keyMiniLatency      = "table.exec.mini-batch.allow-latency"
	keySavepointDir     = "execution.checkpointing.savepoint-dir"
	keyRestorePath      = "execution.state-recovery.path"
	keyIgnoreState      = "execution.state-recovery.ignore-unclaimed-state"
	keyClaimMode        = "execution.state-recovery.claim-mode"
	keyCheckpointDir    = "execution.checkpointing.dir"
	keyS3Endpoint       = "s3.endpoint"
	keyS3Region         = "s3.endpoint.region"
	keyS3AccessKey      = "s3.access-key"
	keyS3SecretKey      = "s3.secret-key"
	keyS3PathStyle      = "s3.path.style.access"
	keyAllowRewind      = "streamsql.state-recovery.allow-rewind"
	keyAggPhase         = "table.optimizer.agg-phase-strategy"
	keyMaxDowntime      = "streamsql.max-downtime"
	keyOnDegraded       = checkpoint.OnDegradedKey
)

type settingType uint8

const (
	textSetting settingType = iota
	intSetting
	floatSetting
	boolSetting
	durationSetting
	zoneSetting
	memorySetting
	storageSetting
)

// setting describes a known key. docs/config.md is the same list.
type setting struct {
	typ     settingType
	def     string
	values  []string // enumerations
	min     float64  // numbers
	max     float64  // numbers; 0 = no limit
	refused map[string]string
	// notice tells, when the key is set, that it has no effect here and why: for keys of Flink that ask for nothing
	// that could change a result.
	notice string
	doc    string
	secret bool // not shown
}

// settings are the keys that have an effect. Defaults are Flink's but for the ones doc names.
var settings = map[string]setting{
	keyRuntimeMode: {def: "streaming", values: []string{"streaming", "batch", "automatic"}, doc: "batch: bounded tables only, one final result, no updates",
		refused: map[string]string{"automatic": "choose streaming or batch"}},
	keyInterval: {typ: durationSetting, def: "10 s", doc: "time between checkpoints; 0 turns them off (Flink's default is off)"},
	keyMode:     {def: "EXACTLY_ONCE", values: []string{"EXACTLY_ONCE", "AT_LEAST_ONCE"}, doc: "EXACTLY_ONCE: barriers are aligned; AT_LEAST_ONCE: they are not, and tables that do not say 'sink.delivery-guarantee' are written without transactions"},
	keyTimeout:  {typ: durationSetting, def: "10 min", min: 1, doc: "a checkpoint that takes longer is given up"},
	keyMinPause: {typ: durationSetting, def: "0", doc: "least time from the end of a checkpoint to the start of the next"},
	keyMaxConcurrent: {typ: intSetting, def: "1", min: 1, doc: "checkpoints in flight at a time",
		refused: nil},
	keyUnaligned:                           {typ: boolSetting, def: "false", doc: "barriers overtake rows that wait at exchanges, which go into the checkpoint: checkpoints stay short under back pressure"},
	keyAlignedTimeout:                      {typ: durationSetting, def: "0", doc: "how long an unaligned checkpoint is tried with aligned barriers first"},
	keyTolerable:                           {typ: intSetting, def: "0", doc: "consecutive failed checkpoints a job survives"},
	"execution.checkpointing.num-retained": {typ: intSetting, def: "3", min: 1, doc: "checkpoints kept (Flink's default is 1)"},
	"execution.checkpointing.externalized-checkpoint-retention": {def: "RETAIN_ON_CANCELLATION", values: []string{"RETAIN_ON_CANCELLATION", "DELETE_ON_CANCELLATION", "NO_EXTERNALIZED_CHECKPOINTS"}, doc: "checkpoints survive a stop", refused: map[string]string{"DELETE_ON_CANCELLATION": "checkpoints always survive a stop; remove the state directory to drop them", "NO_EXTERNALIZED_CHECKPOINTS": "checkpoints always survive a stop; remove the state directory to drop them"}},
	keyCheckpointDir: {typ: storageSetting, def: "", doc: "where checkpoints count: s3://bucket/path, or a file: URI of a directory other machines reach too; the state directory is a copy then. Unset: the state directory"},
	keyS3Endpoint:    {def: "", doc: "address of the S3-compatible store, such as http://host:9000; unset: Amazon's"},
	keyS3Region:      {def: "", doc: "region of the bucket; unset: what the store says"},
	keyS3AccessKey:   {def: "", secret: true, doc: "access key; unset: the environment (AWS_ACCESS_KEY_ID), ~/.aws/credentials, the machine's role"},
	keyS3SecretKey:   {def: "", secret: true, doc: "secret key that belongs to s3.access-key"},
	keyS3PathStyle:   {typ: boolSetting, def: "false", doc: "the bucket is in the path of a URL, not in the host's name: what most stores other than Amazon's need"},
	keySavepointDir:  {def: "", doc: "directory that STOP JOB … WITH SAVEPOINT makes savepoints in; unset: savepoints in the state directory"},
	keyRestorePath:   {def: "", doc: "checkpoint or savepoint that the next job starts from"},
	keyIgnoreState:   {typ: boolSetting, def: "false", doc: "a changed statement may drop state of the checkpoint it starts from, and start operators empty whose input goes on: as --allow-dropped-state"},
	keyClaimMode:     {def: "NO_CLAIM", values: []string{"NO_CLAIM", "CLAIM", "LEGACY"}, doc: "whose a savepoint is that a job started from: it is never changed or removed by the job", refused: map[string]string{"CLAIM": "a job never removes what it started from; streamsql savepoint dispose does", "LEGACY": "use NO_CLAIM"}},
	keyAllowRewind:   {typ: boolSetting, def: "false", doc: "a job may start from a savepoint that is older than what it has committed; that output is written again: as --allow-rewind"},
	keyMaxDowntime:   {typ: durationSetting, def: "1 min", doc: "how long the job may be down before a transaction that it has open is ended by the broker: part of what transaction timeouts are checked against (not Flink's)"},
	keyOnDegraded: {def: "fail", values: []string{"fail", "at-least-once"},
		doc: "what a restore does that cannot be exact, because output of its checkpoint was ended outside or a file of it is damaged: stop and list what cannot be proven, or go back to where nothing is lost and write visible output again, on record (not Flink's)"},

	keyRestart:                                                         {def: "", values: []string{"", "none", "off", "disable", "fixed-delay", "fixeddelay", "failure-rate", "failurerate", "exponential-delay", "exponentialdelay"}, doc: "what happens after a failure; unset: exponential-delay with checkpoints, none without"},
	"restart-strategy.fixed-delay.attempts":                            {typ: intSetting, def: "1", doc: "restarts before giving up"},
	"restart-strategy.fixed-delay.delay":                               {typ: durationSetting, def: "1 s", doc: "wait before a restart"},
	"restart-strategy.failure-rate.max-failures-per-interval":          {typ: intSetting, def: "1", doc: "failures tolerated within the interval"},
	"restart-strategy.failure-rate.failure-rate-interval":              {typ: durationSetting, def: "1 min", doc: "the interval failures are counted in"},
	"restart-strategy.failure-rate.delay":                              {typ: durationSetting, def: "1 s", doc: "wait before a restart"},
	"restart-strategy.exponential-delay.initial-backoff":               {typ: durationSetting, def: "1 s", min: 1, doc: "first wait"},
	"restart-strategy.exponential-delay.max-backoff":                   {typ: durationSetting, def: "1 min", min: 1, doc: "longest wait"},
	"restart-strategy.exponential-delay.backoff-multiplier":            {typ: floatSetting, def: "1.5", min: 1, doc: "growth of the wait"},
	"restart-strategy.exponential-delay.reset-backoff-threshold":       {typ: durationSetting, def: "1 h", doc: "a run of this length resets the wait"},
	"restart-strategy.exponential-delay.jitter-factor":                 {typ: floatSetting, def: "0.1", max: 1, doc: "random share of the wait"},
	"restart-strategy.exponential-delay.attempts-before-reset-backoff": {def: "infinite", doc: "restarts before giving up, or infinite"},

	keyParallelism:      {typ: intSetting, def: "-1", min: -1, doc: "subtasks per operator; -1 = the number of CPUs (Flink's default is 1)"},
	keyTableParallelism: {typ: intSetting, def: "-1", min: -1, doc: "wins over parallelism.default when positive"},
	keyPipelineName:     {def: "", doc: "name of the job; unset: insert-into_<tables>"},
	keyAutoWatermark:    {typ: durationSetting, def: "200 ms", doc: "time between watermarks; 0 = with every advance"},

	keyStateTTL:        {typ: durationSetting, def: "0", doc: "state idle for this long is dropped; 0 = never"},
	keyIntervalCleanup: {typ: durationSetting, def: "0", doc: "an interval join removes rows at least this much later than it could, so in fewer steps"},
	keyIdleTimeout:     {typ: durationSetting, def: "0", doc: "a split without rows for this long no longer holds back the watermark; 0 = never"},
	keyCDCDuplicate:    {typ: boolSetting, def: "false", doc: "changelog sources may repeat events: normalise them by primary key"},
	keyNotNull:         {def: "ERROR", values: []string{"ERROR", "DROP"}, doc: "NULL for a NOT NULL sink column: fail, or drop the row"},
	keyTypeLength:      {def: "IGNORE", values: []string{"IGNORE", "TRIM_PAD", "ERROR"}, doc: "too long values for a sink column: write as they are, trim and pad, or fail"},
	keyMaterialize:     {def: "AUTO", values: []string{"AUTO", "NONE", "FORCE"}, doc: "materialise an updating query before a sink with another key"},
	keyRowtimeInserter: {def: "ENABLED", values: []string{"ENABLED", "DISABLED"}, doc: "the rowtime column becomes the record's timestamp"},
	keyZone:            {typ: zoneSetting, def: "default", doc: "session time zone; default = the machine's"},
	keyMiniBatch:       {typ: boolSetting, def: "false", doc: "results of GROUP BY and Top-N, and rows of joins, wait for more rows: fewer updates, less work, more latency"},
	keyMiniSize:        {typ: intSetting, def: "-1", min: -1, doc: "rows after which the results of a mini-batch leave; needed with mini-batches"},
	keyMiniLatency:     {typ: durationSetting, def: "0", doc: "time after which they leave at the latest; needed with mini-batches"},
	keyHints:           {typ: boolSetting, def: "true", doc: "whether OPTIONS hints are allowed"},
	keyOnConflict: {typ: boolSetting, def: "false",
		doc: "whether an INSERT has to say ON CONFLICT where its key is not the sink's (Flink's default is true)"},
	"table.exec.legacy-cast-behaviour":                  {def: "DISABLED", values: []string{"DISABLED", "ENABLED"}, refused: map[string]string{"ENABLED": "use TRY_CAST where a failed cast shall give NULL"}, doc: "a failed CAST fails the job"},
	"table.exec.legacy-bytes-to-string-cast":            {typ: boolSetting, def: "false", refused: map[string]string{"true": "use ENCODE, DECODE or TO_BASE64"}, doc: "casts of bytes to strings decode UTF-8"},
	"table.exec.sort.default-limit":                     {def: "-1", values: []string{"-1"}, doc: "limit of ORDER BY without LIMIT in batch mode: none; write LIMIT in the query"},
	"table.sql-dialect":                                 {def: "default", values: []string{"default", "hive"}, refused: map[string]string{"hive": "only Flink's dialect is supported"}, doc: "the dialect"},
	"table.dml-sync":                                    {typ: boolSetting, def: "false", doc: "INSERT waits for the job"},
	"table.optimizer.non-deterministic-update.strategy": {def: "IGNORE", values: []string{"IGNORE", "TRY_RESOLVE"}, doc: "queries whose changes may not find the rows they take back: IGNORE runs them with a notice, TRY_RESOLVE lets lookup joins keep the rows they found and refuses the rest"},
	"table.optimizer.distinct-agg.split.enabled":        {typ: boolSetting, def: "false", notice: "the distinct values of a group stay in one subtask; splitting them cost as much or more where it was measured", doc: "no effect: the distinct values of a group stay in one subtask; splitting them cost as much or more where it was measured"},
	"table.optimizer.distinct-agg.split.bucket-num":     {typ: intSetting, def: "1024", min: 1, notice: "the distinct values of a group stay in one subtask; splitting them cost as much or more where it was measured", doc: "no effect: the distinct values of a group stay in one subtask; splitting them cost as much or more where it was measured"},
	"table.display.max-column-width":                    {typ: intSetting, def: "30", min: 1, doc: "width of text columns in tables"},
	"sql-client.execution.result-mode":                  {def: "TABLE", values: []string{"TABLE", "CHANGELOG", "TABLEAU"}, doc: "how SELECT is shown"},
	"sql-client.execution.max-table-result.rows":        {typ: intSetting, def: "1000000", min: 1, notice: "results are streamed or printed whole", doc: "no effect: results are streamed or printed whole"},
	"sql-client.verbose":                                {typ: boolSetting, def: "false", notice: "errors always show their cause", doc: "no effect: errors always show their cause"},
	"sql-client.display.print-time-cost":                {typ: boolSetting, def: "true", notice: "use \\timing in the shell", doc: "no effect: \\timing in the shell shows the time taken"},
	"table.legacy-nested-row-nullability":               {typ: boolSetting, def: "false", refused: map[string]string{"true": "nested fields keep their own nullability"}, doc: "nullability of nested fields"},
	"table.column-expansion-strategy":                   {def: "", values: []string{""}, doc: "SELECT * takes every column"},
	"table.exec.emit.allow-lateness":                    {def: "", values: []string{""}, doc: "not supported: late rows of closed windows are dropped"},
	"table.exec.emit.early-fire.enabled":                {typ: boolSetting, def: "false", refused: map[string]string{"true": "windows fire once, at their end"}, doc: "early results of windows"},
	"table.exec.emit.late-fire.enabled":                 {typ: boolSetting, def: "false", refused: map[string]string{"true": "windows fire once, at their end"}, doc: "late results of windows"},
	keyAggPhase:                                         {def: "AUTO", values: []string{"AUTO", "ONE_PHASE", "TWO_PHASE"}, doc: "whether rows are combined before the exchange by key as well: AUTO where it can pay"},
}

// deprecatedKeys maps Flink's older names to the current ones.
var deprecatedKeys = map[string]string{
	"execution.checkpointing.unaligned": keyUnaligned, "execution.checkpointing.alignment-timeout": keyAlignedTimeout,
	"restart-strategy": keyRestart, "state.checkpoints.dir": keyCheckpointDir, "s3.path-style-access": keyS3PathStyle, "s3.region": keyS3Region,
	"state.savepoints.dir": "execution.checkpointing.savepoint-dir", "execution.savepoint.path": keyRestorePath, "execution.savepoint.ignore-unclaimed-state": keyIgnoreState, "execution.savepoint-restore-mode": keyClaimMode,
	"state.checkpoints.num-retained":      "execution.checkpointing.num-retained",
	"sql-client.display.max-column-width": "table.display.max-column-width",
}

// irrelevantPrefixes are Flink's keys that tune a cluster, a JVM or a state backend: accepted with a notice.
var irrelevantPrefixes = []string{
	"rest.", "jobmanager.", "taskmanager.", "yarn.", "kubernetes.", "high-availability", "cluster.", "client.", "env.", "metrics.",
	"execution.target", "execution.attached", "execution.shutdown-", "execution.batch", "execution.buffer-timeout",
	"execution.checkpointing.unaligned.", "execution.checkpointing.incremental",
	"execution.checkpointing.local-backup", "execution.checkpointing.file-merging", "execution.checkpointing.snapshot-compression",
	"execution.checkpointing.interval-during-backlog", "execution.checkpointing.storage", "execution.state-recovery.",
	"state.backend", "state.storage", "pipeline.max-parallelism", "pipeline.object-reuse", "pipeline.operator-chaining",
	"pipeline.generic-types", "pipeline.jars", "pipeline.classpaths", "pipeline.global-job-parameters", "pipeline.watermark-alignment",
	"table.exec.async", "table.exec.interval-join.", "table.exec.rank.", "table.exec.deduplicate.", "table.exec.window-agg.", "table.exec.uid.",
	"table.exec.spill-", "table.exec.sort.", "table.exec.simplify-operator-name-enabled", "table.exec.sink.keyed-shuffle",
	"table.exec.sink.nested-constraint-enforcer", "table.optimizer.", "table.plan.", "table.rtas-ctas.", "table.builtin-",
	"table.resources.", "sql-client.display.", "sql-client.", "sql-gateway.", "python.", "security.", "fs.", "s3.",
}

func irrelevant(key string) bool {
	return slices.ContainsFunc(irrelevantPrefixes, func(p string) bool { return strings.HasPrefix(key, p) })
}

func canonicalKey(key string) (canonical, notice string) {
	if k, old := deprecatedKeys[key]; old {
		return k, fmt.Sprintf("'%s' is an old name; use '%s'", key, k)
	}
	return key, ""
}

func settingKeys() []string {
	out := make([]string, 0, len(settings))
	for k := range settings {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

// check validates one value.
func (s setting) check(key, value string, pos diag.Pos) error {
	bad := func(format string, args ...any) *diag.Error {
		return diag.New(diag.Config, pos, "setting '%s': '%s' is not valid", key, value).WithDetail(format, args...).
			WithHint("SET '%s' = '%s' is the default", key, s.def)
	}
	for v, why := range s.refused {
		if strings.EqualFold(v, value) {
			return diag.New(diag.Unsupported, pos, "setting '%s' = '%s' is not supported", key, value).WithHint("%s", why)
		}
	}
	number := func(f float64, err error) error {
		if err != nil || f < s.min || math.IsNaN(f) || math.IsInf(f, 0) {
			return bad("a number of at least %g is expected", s.min)
		}
		if s.max > 0 && f > s.max {
			return bad("a number from %g to %g is expected", s.min, s.max)
		}
		return nil
	}
	text := strings.TrimSpace(value)
	switch s.typ {
	case intSetting:
		n, err := strconv.ParseInt(text, 10, 32)
		if err == nil && (key == keyParallelism || key == keyTableParallelism) && n > maxParallelism {
			return bad("at most %d subtasks are possible", maxParallelism)
		}
		if err == nil && (key == keyParallelism) && n == 0 {
			return bad("a positive number is expected, or -1 for the number of CPUs")
		}
		return number(float64(n), err)
	case floatSetting:
		f, err := strconv.ParseFloat(text, 64)
		return number(f, err)
	case boolSetting:
		if !strings.EqualFold(text, "true") && !strings.EqualFold(text, "false") {
			return bad("true or false is expected")
		}
	case durationSetting:
		d, err := connectors.ParseDuration(text)
		if err != nil {
			return bad("%v", err)
		}
		if float64(d/time.Millisecond) < s.min {
			return bad("at least %g ms is expected", s.min)
		}
	case memorySetting:
		n, err := connectors.ParseMemory(text)
		switch {
		case err != nil:
			return bad("%v", err)
		case float64(n) < s.min || s.max > 0 && float64(n) > s.max:
			return bad("a size from %g to %g bytes is expected", s.min, s.max)
		}
	case storageSetting:
		if _, err := parseStorage(text); err != nil {
			return bad("%v", err).WithHint("write s3://bucket/path or file:///directory")
		}
	case zoneSetting:
		if _, err := parseZone(text); err != nil {
			return bad("%v", err).WithHint("use a zone id such as 'UTC', 'Asia/Shanghai' or 'GMT+08:00'")
		}
	case textSetting:
		if s.values != nil && !slices.ContainsFunc(s.values, func(v string) bool { return strings.EqualFold(v, text) }) {
			return bad("one of %s is expected", strings.Join(slices.DeleteFunc(slices.Clone(s.values), func(v string) bool { return v == "" }), ", "))
		}
		if key == "restart-strategy.exponential-delay.attempts-before-reset-backoff" && text != "infinite" {
			n, err := strconv.ParseInt(text, 10, 32)
			if err == nil && n < 1 {
				return bad("a number of at least 1 is expected, or infinite")
			}
			return number(float64(n), err)
		}
	}
	return nil
}

// maxParallelism bounds subtasks by the number of key groups.
const maxParallelism = 128

// parseZone reads a zone id: "default", a region, "UTC", or an offset such as "GMT+8:00", "+08:00".
func parseZone(id string) (*time.Location, error) {
	if id == "" || strings.EqualFold(id, "default") {
		return time.Local, nil
	}
	if off, ok := zoneOffset(id); ok {
		return time.FixedZone(id, off), nil
	}
	if len(id) == 3 && id != "UTC" && id != "GMT" {
		return nil, fmt.Errorf("the abbreviation %s is ambiguous", id)
	}
	z, err := time.LoadLocation(id)
	if err != nil {
		return nil, fmt.Errorf("unknown time zone %s", id)
	}
	return z, nil
}

// zoneOffset reads [GMT|UTC](+|-)h[h][:mm] in seconds.
func zoneOffset(id string) (seconds int, ok bool) {
	s := strings.TrimPrefix(strings.TrimPrefix(id, "GMT"), "UTC")
	if s == "" {
		return 0, true
	}
	if len(s) < 2 || s[0] != '+' && s[0] != '-' {
		return 0, false
	}
	hh, mm, colon := strings.Cut(s[1:], ":")
	h, err1 := strconv.Atoi(hh)
	m, err2 := 0, error(nil)
	if colon {
		m, err2 = strconv.Atoi(mm)
	}
	if err1 != nil || err2 != nil || h > 18 || h < 0 || m > 59 || m < 0 {
		return 0, false
	}
	seconds = h*3600 + m*60
	if s[0] == '-' {
		seconds = -seconds
	}
	return seconds, true
}
