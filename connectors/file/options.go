package file

import (
	"context"
	"regexp"
	"slices"
	"strings"

	"github.com/streamsql/streamsql/catalog"
	"github.com/streamsql/streamsql/connectors"
	"github.com/streamsql/streamsql/connectors/format"
	"github.com/streamsql/streamsql/sql/diag"
	"github.com/streamsql/streamsql/sql/types"
)

var options = []connectors.Option{
	{Key: "path", Required: true, Flink: true, Doc: "directory, or one file to read"},
	{Key: "partition.default-name", Default: "__DEFAULT_PARTITION__", Flink: true, Doc: "directory name for a partition value that is NULL or empty"},
	{Key: "source.monitor-interval", Type: connectors.DurationOption, Flink: true, Doc: "look for new files this often; without it the table ends with the files there are"},
	{Key: "source.path.regex-pattern", Flink: true, Doc: "read only files whose absolute path matches as a whole"},
	{Key: "source.report-statistics", Type: connectors.EnumOption, Default: "NONE", Values: []string{"ALL", "NONE"}, Flink: true, Doc: "accepted for compatibility; the planner uses no statistics"},
	{Key: "scan.on-error", Type: connectors.EnumOption, Default: "fail", Values: []string{"fail", "skip"}, Doc: "what to do with a line that cannot be decoded; skipped lines are counted and logged"},
	{Key: headerKey, Type: connectors.BoolOption, Default: "false", Doc: "with format 'csv': the first line of each file holds the names of the columns; it is skipped when reading and written first into each new file. Fields are still read by position, and a line with the table's names in another order is refused"},
	{Key: "sink.parallelism", Type: connectors.IntOption, Flink: true, Doc: "number of subtasks that write"},
	{Key: "sink.rolling-policy.file-size", Type: connectors.MemoryOption, Default: "128mb", Flink: true, Doc: "start a new file beyond this size"},
	{Key: "sink.rolling-policy.rollover-interval", Type: connectors.DurationOption, Default: "30 min", Flink: true,
		Doc: "start a new file when the open one is older; every checkpoint starts one anyway"},
	{Key: "sink.rolling-policy.inactivity-interval", Type: connectors.DurationOption, Default: "30 min", Flink: true,
		Doc: "without effect: a file that gets no rows is closed by the next checkpoint, before which it could not become visible"},
	{Key: "sink.rolling-policy.check-interval", Type: connectors.DurationOption, Default: "1 min", Flink: true,
		Doc: "without effect: ages are checked with every batch"},
	{Key: "sink.partition-commit.trigger", Type: connectors.EnumOption, Default: "process-time", Values: []string{"process-time", "partition-time"}, Flink: true,
		Doc: "when a partition is complete; only 'process-time' is supported"},
	{Key: "sink.partition-commit.delay", Type: connectors.DurationOption, Default: "0 s", Flink: true, Doc: "only 0 is supported"},
	{Key: "sink.partition-commit.policy.kind", Flink: true, Doc: "'success-file' writes a marker file into a partition with every commit to it"},
	{Key: "sink.partition-commit.success-file.name", Default: "_SUCCESS", Flink: true, Doc: "name of the marker file"},
	{Key: "sink.shuffle-by-partition.enable", Type: connectors.BoolOption, Default: "false", Flink: true, Doc: "only 'false' is supported"},
	{Key: "auto-compaction", Type: connectors.BoolOption, Default: "false", Flink: true, Doc: "only 'false' is supported"},
	connectors.PropertyVersion,
}

// refused are options of Flink that streamsql does not have, with the reason.
var refused = map[string]string{
	"compaction.file-size":                          "files are not compacted",
	"compaction.parallelism":                        "files are not compacted",
	"sink.partition-commit.watermark-time-zone":     "partitions are not committed by watermark",
	"sink.partition-commit.policy.class":            "classes of user code cannot be loaded",
	"sink.partition-commit.policy.class.parameters": "classes of user code cannot be loaded",
	"partition.time-extractor.kind":                 "partitions are not committed by watermark",
	"partition.time-extractor.class":                "classes of user code cannot be loaded",
	"partition.time-extractor.timestamp-pattern":    "partitions are not committed by watermark",
	"partition.time-extractor.timestamp-formatter":  "partitions are not committed by watermark",
}

var metadata = []connectors.MetadataColumn{
	{Key: "file.path", Type: types.StringType.NotNull(), Doc: "path of the file"},
	{Key: "file.name", Type: types.StringType.NotNull(), Doc: "name of the file without directories"},
	{Key: "file.size", Type: types.BigIntType.NotNull(), Doc: "size of the file in bytes when it was opened"},
	{Key: "file.modification-time", Type: types.TimestampOf(types.TimestampLTZ, 3).NotNull(), Doc: "when the file was last changed before it was opened"},
}

// Connector is 'filesystem'.
func Connector() connectors.Connector {
	return connectors.Connector{
		Name: "filesystem", Doc: "files of a directory, in json, csv, raw or a changelog format",
		Options: options, NeedsFormat: true, Metadata: metadata,
		SourceMode: func(t *catalog.Table) (types.ChangelogMode, error) {
			c, err := parse(t)
			if err != nil {
				return 0, err
			}
			return c.fm.Value.Source, nil
		},
		Bounded: func(t *catalog.Table) (bool, error) {
			c, err := parse(t)
			if err != nil {
				return false, err
			}
			return c.monitor == 0, nil
		},
		Check: check,
		Replay: func(*catalog.Table) (connectors.Replay, error) {
			return connectors.Replay{Position: "the path, the byte and the number of the record in every file"}, nil
		},
		ReadsFields: func(t *catalog.Table, _ int) bool {
			c, err := parse(t)
			return err == nil && c.fm.Value.ReadsFields
		},
		NewSource: func(_ context.Context, spec connectors.SourceSpec) (connectors.Source, error) {
			return newSource(spec)
		},
		SinkModes: func(t *catalog.Table) ([]connectors.SinkMode, error) {
			c, err := parse(t)
			if err != nil {
				return nil, err
			}
			return []connectors.SinkMode{{Delivery: connectors.TwoPhaseCommit, Changelog: c.fm.Value.Sink,
				Reason: "files get their visible name when the checkpoint that lists them is durable",
				Commit: connectors.Commitment{
					Held:       "in hidden files of the table's directory, written and synced at the barrier",
					ID:         "path, lineage, length, number of rows and checksum of every file",
					Known:      "the visible name: it is there or it is not; a rename that happened is not repeated",
					PerSubtask: true,
				},
				Behind: "whoever reads files that begin with a dot, or keeps a file's name and expects its contents to grow"}}, nil
		},
		NewSink: func(_ context.Context, spec connectors.SinkSpec) (connectors.Sink, error) { return newSink(spec) },
	}
}

// config is a table's options, resolved.
type config struct {
	t       *catalog.Table
	v       *connectors.Values
	fm      *format.Choice
	path    string
	monitor int64 // ms
	pattern *regexp.Regexp
	keys    []catalog.Column // partition columns in PARTITIONED BY order
	body    *types.Schema    // the columns inside of files
	success string           // name of the marker file, "" = none
	header  bool             // the first line of a file holds names
}

func parse(t *catalog.Table) (*config, error) {
	for _, key := range t.Options.Keys() {
		if why, ok := refused[key]; ok {
			return nil, diag.New(diag.Unsupported, t.Options.Pos(key), "table %s: option '%s' is not supported: %s", t.Name, key, why).WithHint("remove the option")
		}
	}
	fm, err := format.Choose(t, format.Plain)
	if err != nil {
		return nil, err
	}
	v, err := connectors.Parse(t, append(slices.Clone(options), fm.Options()...), nil)
	if err != nil {
		return nil, err
	}
	c := &config{t: t, v: v, fm: fm, monitor: v.Duration("source.monitor-interval").Milliseconds(), body: &types.Schema{}}
	if err := c.resolve(); err != nil {
		return nil, err
	}
	if err := c.resolveHeader(); err != nil {
		return nil, err
	}
	return c, c.columns()
}

func (c *config) resolve() error {
	v := c.v
	c.path = v.String("path")
	if scheme, rest, ok := strings.Cut(c.path, "://"); ok {
		if scheme != "file" {
			return diag.New(diag.Unsupported, v.Pos("path"), "table %s: option 'path': file system '%s' is not supported", c.t.Name, scheme).
				WithHint("use a path of this machine, with or without file://")
		}
		c.path = rest
	}
	if c.path == "" {
		return v.Errorf("path", "the path is empty")
	}
	if v.Has("source.monitor-interval") && c.monitor <= 0 {
		return v.Errorf("source.monitor-interval", "'%s' is not positive", v.String("source.monitor-interval"))
	}
	if p := v.String("source.path.regex-pattern"); p != "" {
		re, err := regexp.Compile("^(?:" + p + ")$")
		if err != nil {
			return v.Errorf("source.path.regex-pattern", "not a regular expression").Wrap(err)
		}
		c.pattern = re
	}
	if v.Has("sink.parallelism") && v.Int("sink.parallelism") < 1 {
		return v.Errorf("sink.parallelism", "%d is not positive", v.Int("sink.parallelism"))
	}
	for _, key := range []string{"auto-compaction", "sink.shuffle-by-partition.enable"} {
		if v.Bool(key) {
			return unsupported(v, key, "only 'false' is supported")
		}
	}
	if v.Enum("sink.partition-commit.trigger") != "process-time" {
		return unsupported(v, "sink.partition-commit.trigger", "only 'process-time' is supported")
	}
	if v.Duration("sink.partition-commit.delay") != 0 {
		return unsupported(v, "sink.partition-commit.delay", "only 0 is supported")
	}
	return c.commitPolicy()
}

func unsupported(v *connectors.Values, key, why string) error {
	e := v.Errorf(key, "'%s': %s", v.String(key), why).WithHint("remove the option")
	e.Code = diag.Unsupported
	return e
}

func (c *config) commitPolicy() error {
	const key = "sink.partition-commit.policy.kind"
	kinds := c.v.String(key)
	if kinds == "" {
		return nil
	}
	if len(c.t.Partitions) == 0 {
		return c.v.Errorf(key, "the table has no partitions to commit").WithHint("add PARTITIONED BY, or remove the option")
	}
	for kind := range strings.SplitSeq(kinds, ",") {
		if strings.TrimSpace(kind) != "success-file" {
			return unsupported(c.v, key, "only 'success-file' is supported")
		}
	}
	c.success = c.v.String("sink.partition-commit.success-file.name")
	if c.success == "" || strings.ContainsAny(c.success, "/\x00") {
		return c.v.Errorf("sink.partition-commit.success-file.name", "'%s' is not a file name", c.success)
	}
	return nil
}

// columns sorts the columns into partition keys and the contents of files.
func (c *config) columns() error {
	for _, name := range c.t.Partitions {
		col := c.t.Column(name)
		if col == nil || col.Kind != catalog.Physical {
			return diag.New(diag.Semantic, c.v.Pos("path"), "table %s: partition column %s is not a physical column", c.t.Name, name)
		}
		switch k := col.Type.Kind; {
		case col.Type.IsString(), col.Type.IsInteger(), k == types.Boolean, k == types.Date:
		default:
			return diag.New(diag.Unsupported, c.v.Pos("path"), "table %s: partition column %s has type %s", c.t.Name, name, col.Type).
				WithHint("partition by STRING, integer, BOOLEAN or DATE columns")
		}
		c.keys = append(c.keys, *col)
	}
	for _, col := range c.t.Columns {
		if col.Kind == catalog.Physical && !slices.Contains(c.t.Partitions, col.Name) {
			c.body.Columns = append(c.body.Columns, types.Column{Name: col.Name, Type: col.Type})
		}
	}
	if c.body.Len() == 0 {
		return diag.New(diag.Semantic, c.v.Pos("path"), "table %s: every column is a partition column, so its files would be empty", c.t.Name)
	}
	return nil
}

func check(t *catalog.Table, use connectors.Use) error {
	c, err := parse(t)
	if err != nil {
		return err
	}
	return c.fm.Check(c.body, nil, c.v, use)
}
