package connectors

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/streamsql/streamsql/catalog"
	"github.com/streamsql/streamsql/sql/diag"
)

// OptionType is the type of a table option's value.
type OptionType uint8

// The types. Durations and sizes use Flink's spellings ("5 s", "1min", "128mb").
const (
	StringOption OptionType = iota
	IntOption
	BoolOption
	FloatOption
	DurationOption
	MemoryOption
	EnumOption
	ListOption // separated by ';'
)

// String is the word used in messages and in docs/connectors.md.
func (t OptionType) String() string {
	return [...]string{"string", "integer", "boolean", "number", "duration", "memory size", "enum", "list"}[t]
}

// Option describes a table option. docs/connectors.md is generated from it.
type Option struct {
	Key        string
	Type       OptionType
	Default    string // "" = none
	Values     []string
	Required   bool
	Deprecated string // the key to use instead
	Doc        string
	// Flink is false for options of our own, which are stripped for a Flink cluster.
	Flink bool
}

// PropertyVersion is accepted by every connector but datagen and has no effect, as in Flink.
var PropertyVersion = Option{Key: "property-version", Type: IntOption, Default: "1", Flink: true,
	Doc: "version of the option set; accepted for compatibility, 1 is the only one"}

// Prefixed are opts with prefix before every key, e.g. "json." or "value.json.". Format options reach a table this way.
func Prefixed(prefix string, opts []Option) []Option {
	out := make([]Option, len(opts))
	for i, o := range opts {
		o.Key = prefix + o.Key
		if o.Deprecated != "" {
			o.Deprecated = prefix + o.Deprecated
		}
		out[i] = o
	}
	return out
}

// Values are the options of one table, checked against their descriptions. The getters take a declared key and return
// its value or its default; a key that was not declared is a programming error and panics.
type Values struct {
	t        *catalog.Table
	opts     map[string]Option
	prefixes []string
	prefix   string // of a Sub view
}

// watermarkOptions belong to the table's watermark, not to its connector: the planner reads them, every table may have
// them.
var watermarkOptions = []Option{
	{Key: "scan.watermark.emit.strategy", Type: EnumOption, Default: "on-periodic", Values: []string{"on-periodic", "on-event"}, Flink: true},
	{Key: "scan.watermark.idle-timeout", Type: DurationOption, Flink: true},
	{Key: "scan.watermark.max-future-skew", Type: DurationOption},
}

// Parse checks the options of t: each must be one of opts (or 'connector', or start with one of prefixes), the required
// ones must be there and every value must have its type. The first fault is returned as a *diag.Error of class Config
// with the option's position; values of secret options are never shown.
func Parse(t *catalog.Table, opts []Option, prefixes []string) (*Values, error) {
	v := &Values{t: t, opts: make(map[string]Option, len(opts)+1), prefixes: prefixes}
	v.opts["connector"] = Option{Key: "connector"}
	for _, o := range watermarkOptions {
		v.opts[o.Key] = o // before the connector's own, which may say more
	}
	for _, o := range opts {
		v.opts[o.Key] = o
	}
	if err := v.checkRequired(opts); err != nil {
		return nil, err
	}
	for _, key := range t.Options.Keys() {
		o, ok := v.opts[key]
		if !ok {
			continue
		}
		text, _ := t.Options.Get(key)
		if err := v.checkValue(o, text); err != nil {
			return nil, err
		}
	}
	if err := v.checkUnknown(); err != nil {
		return nil, err
	}
	return v, nil
}

func (v *Values) checkRequired(opts []Option) error {
	var missing []string
	for _, o := range opts {
		if o.Required && !v.Has(o.Key) {
			missing = append(missing, "'"+o.Key+"'")
		}
	}
	if missing == nil {
		return nil
	}
	slices.Sort(missing)
	what, it := "option", "it"
	if len(missing) > 1 {
		what, it = "options", "them"
	}
	err := diag.New(diag.Config, v.t.Options.Pos("connector"), "table %s: missing required %s %s", v.t.Name, what, strings.Join(missing, ", ")).
		WithDetail("connector '%s' needs %s; the table's options are %s", v.t.Connector(), it, Render(v.t))
	if wrong, right := v.misspelt(missing); wrong != "" {
		return err.WithHint("write %s instead of '%s'", right, wrong)
	}
	return err.WithHint("add %s = '...' to the WITH clause", strings.Join(missing, " = '...', "))
}

// misspelt finds an option of the table that is none of the connector's and looks like one of missing, which are quoted.
func (v *Values) misspelt(missing []string) (wrong, right string) {
	for _, key := range v.t.Options.Keys() {
		if _, known := v.opts[key]; known {
			continue
		}
		if near := diag.Nearest("'"+key+"'", missing); near != "" {
			return key, near
		}
	}
	return "", ""
}

func (v *Values) checkValue(o Option, text string) error {
	fail := func(why string) *diag.Error {
		what := "a valid " + o.Type.String()
		if o.Type == EnumOption {
			what = "one of its values"
		}
		return diag.New(diag.Config, v.t.Options.Pos(o.Key), "table %s: option '%s': '%s' is not %s",
			v.t.Name, o.Key, catalog.ShowOption(o.Key, text), what).WithDetail("%s", why)
	}
	switch o.Type {
	case IntOption:
		if _, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64); err != nil {
			return fail("an integer is expected")
		}
	case FloatOption:
		if _, err := strconv.ParseFloat(strings.TrimSpace(text), 64); err != nil {
			return fail("a number is expected")
		}
	case BoolOption:
		if _, ok := parseBool(text); !ok {
			return fail("'true' or 'false' is expected")
		}
	case DurationOption:
		if _, err := ParseDuration(text); err != nil {
			return fail(err.Error())
		}
	case MemoryOption:
		if _, err := ParseMemory(text); err != nil {
			return fail(err.Error())
		}
	case EnumOption:
		if _, ok := foldEnum(o.Values, text); !ok {
			err := fail("allowed are " + quoteAll(o.Values))
			near := completed(text, o.Values)
			if near == "" {
				near = diag.Nearest(text, o.Values)
			}
			if near != "" {
				err = err.WithHint("did you mean '%s'?", near)
			}
			return err
		}
	}
	return nil
}

func (v *Values) checkUnknown() error {
	var unknown []string
	for _, key := range v.t.Options.Keys() {
		if _, ok := v.opts[key]; !ok && !v.hasPrefix(key) {
			unknown = append(unknown, key)
		}
	}
	if unknown == nil {
		return nil
	}
	supported := slices.Sorted(maps.Keys(v.opts))
	listed := slices.Clone(supported)
	for i, key := range listed {
		if d := v.opts[key].Deprecated; d != "" {
			listed[i] += " (deprecated, use " + d + ")"
		}
	}
	for _, p := range v.prefixes {
		listed = append(listed, p+"*")
	}
	what := "option"
	if len(unknown) > 1 {
		what = "options"
	}
	err := diag.New(diag.Config, v.t.Options.Pos(unknown[0]), "table %s: connector '%s' does not support %s %s",
		v.t.Name, v.t.Connector(), what, quoteAll(unknown)).
		WithDetail("supported options:\n%s", strings.Join(listed, "\n"))
	if hint := v.unknownHint(unknown[0], supported); hint != "" {
		err = err.WithHint("%s", hint)
	}
	return err
}

// unknownHint knows the frequent mistake of leaving the format's prefix away or of writing the wrong one.
func (v *Values) unknownHint(key string, supported []string) string {
	for _, s := range supported {
		if strings.HasSuffix(s, "."+key) {
			return "did you mean '" + s + "'?"
		}
	}
	if near := diag.Nearest(key, supported); near != "" {
		return "did you mean '" + near + "'?"
	}
	if head, rest, ok := strings.Cut(key, "."); ok {
		if near := diag.Nearest(head+".", v.prefixes); near != "" {
			return "did you mean '" + near + rest + "'?"
		}
	}
	return ""
}

// completed is the only value that text is the beginning of, such as 'earliest-offset' for 'earliest'; "" when there
// is none or a choice.
func completed(text string, values []string) string {
	found := ""
	for _, v := range values {
		if text != "" && len(text) < len(v) && strings.EqualFold(text, v[:len(text)]) {
			if found != "" {
				return ""
			}
			found = v
		}
	}
	return found
}

func (v *Values) hasPrefix(key string) bool {
	for _, p := range v.prefixes {
		if strings.HasPrefix(key, p) && len(key) > len(p) {
			return true
		}
	}
	return false
}

// Table is the table whose options these are.
func (v *Values) Table() *catalog.Table { return v.t }

// Sub is a view in which prefix stands before every key: format options are read through Sub("json.").
func (v *Values) Sub(prefix string) *Values {
	s := *v
	s.prefix = v.prefix + prefix
	return &s
}

// Pos is where key, or the deprecated key that stands for it, was written.
func (v *Values) Pos(key string) diag.Pos {
	if k, ok := v.written(v.prefix + key); ok {
		return v.t.Options.Pos(k)
	}
	return v.t.Options.Pos("connector")
}

// Has reports whether the user wrote key or a deprecated key for it.
func (v *Values) Has(key string) bool {
	_, ok := v.written(v.prefix + key)
	return ok
}

// written finds the key in effect for a full key: itself or a deprecated spelling of it.
func (v *Values) written(full string) (string, bool) {
	if _, ok := v.t.Options.Get(full); ok {
		return full, true
	}
	for _, o := range v.opts {
		if o.Deprecated == full {
			if _, ok := v.t.Options.Get(o.Key); ok {
				return o.Key, true
			}
		}
	}
	return "", false
}

func (v *Values) raw(key string) (string, Option) {
	full := v.prefix + key
	o, ok := v.opts[full]
	if !ok {
		panic("connectors: option " + full + " is read but not declared")
	}
	if k, ok := v.written(full); ok {
		text, _ := v.t.Options.Get(k)
		return text, o
	}
	return o.Default, o
}

// String is the value of key as written.
func (v *Values) String(key string) string {
	s, _ := v.raw(key)
	return s
}

// Int is the value of an IntOption, 0 when it has neither value nor default.
func (v *Values) Int(key string) int64 {
	s, _ := v.raw(key)
	n, _ := strconv.ParseInt(strings.TrimSpace(s), 10, 64)
	return n
}

// Float is the value of a FloatOption.
func (v *Values) Float(key string) float64 {
	s, _ := v.raw(key)
	f, _ := strconv.ParseFloat(strings.TrimSpace(s), 64)
	return f
}

// Bool is the value of a BoolOption.
func (v *Values) Bool(key string) bool {
	s, _ := v.raw(key)
	b, _ := parseBool(s)
	return b
}

// Duration is the value of a DurationOption, 0 when it has neither value nor default.
func (v *Values) Duration(key string) time.Duration {
	s, _ := v.raw(key)
	d, _ := ParseDuration(s)
	return d
}

// Memory is the value of a MemoryOption in bytes.
func (v *Values) Memory(key string) int64 {
	s, _ := v.raw(key)
	n, _ := ParseMemory(s)
	return n
}

// Enum is the value of an EnumOption in its documented spelling, however the user capitalised it.
func (v *Values) Enum(key string) string {
	s, o := v.raw(key)
	e, _ := foldEnum(o.Values, s)
	return e
}

// List is the value of a ListOption: the trimmed parts between ';', nil when empty.
func (v *Values) List(key string) []string {
	s, _ := v.raw(key)
	var out []string
	for part := range strings.SplitSeq(s, ";") {
		if part = strings.TrimSpace(part); part != "" {
			out = append(out, part)
		}
	}
	return out
}

// Errorf is a Config error about key, at its position, naming table and key: "table t: option 'k': <text>".
func (v *Values) Errorf(key, format string, args ...any) *diag.Error {
	e := diag.New(diag.Config, v.Pos(key), format, args...)
	e.Message = "table " + v.t.Name + ": option '" + v.prefix + key + "': " + e.Message
	return e
}

func parseBool(s string) (value, ok bool) {
	switch strings.ToLower(strings.TrimSpace(s)) {
	case "true":
		return true, true
	case "false":
		return false, true
	}
	return false, false
}

func foldEnum(values []string, s string) (string, bool) {
	for _, v := range values {
		if strings.EqualFold(v, s) {
			return v, true
		}
	}
	return "", false
}

func quoteAll(keys []string) string { return "'" + strings.Join(keys, "', '") + "'" }
