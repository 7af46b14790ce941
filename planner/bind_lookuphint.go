package planner

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/streamsql/streamsql/connectors"
	"github.com/streamsql/streamsql/sql"
	"github.com/streamsql/streamsql/sql/diag"
)

// lookupHint is a LOOKUP hint: how a table is looked up. The zero value is Flink's default with one difference: without
// a hint lookups are synchronous, as the keys of a whole batch go in one request.
type lookupHint struct {
	name      sql.Name
	used      bool
	async     bool
	unordered bool
	capacity  int
	timeout   time.Duration
	attempts  int
	delay     time.Duration
}

// lookupHints are the LOOKUP hints of a SELECT block by table.
type lookupHints map[string]*lookupHint

func (l lookupHints) take(table string) lookupHint {
	h := l[table]
	if h == nil {
		return lookupHint{}
	}
	h.used = true
	return *h
}

func (l lookupHints) checkUsed() error {
	for _, h := range l {
		if !h.used {
			return diag.New(diag.Semantic, h.name.Pos, "hint LOOKUP names %s, which this SELECT does not look up", h.name.Text).
				WithHint("name a table joined with FOR SYSTEM_TIME AS OF a processing time, by its alias if it has one")
		}
	}
	return nil
}

// lookupHintKeys are the options of the hint.
var lookupHintKeys = []string{"table", "async", "output-mode", "capacity", "timeout", "retry-predicate", "retry-strategy", "fixed-delay", "max-attempts", "shuffle"}

// add reads one hint.
func (l lookupHints) add(h sql.Hint) error {
	out := &lookupHint{capacity: 100, timeout: 3 * time.Minute}
	given := map[string]sql.Option{}
	for _, o := range h.Options {
		if !slices.Contains(lookupHintKeys, o.Key) {
			e := diag.New(diag.Semantic, o.KeyPos, "hint LOOKUP has no option '%s'", o.Key).WithDetail("its options are %s", strings.Join(lookupHintKeys, ", "))
			if near := diag.Nearest(o.Key, lookupHintKeys); near != "" {
				e.WithHint("did you mean '%s'?", near)
			}
			return e
		}
		given[o.Key] = o
		if err := out.set(o); err != nil {
			return err
		}
	}
	if out.name.Text == "" {
		return diag.New(diag.Semantic, h.Pos, "hint LOOKUP names no table").WithHint("write /*+ LOOKUP('table'='t', 'async'='true') */")
	}
	for _, key := range []string{"output-mode", "capacity", "timeout"} {
		if o, ok := given[key]; ok && !out.async {
			return diag.New(diag.Semantic, o.KeyPos, "hint LOOKUP: '%s' has no effect without 'async'='true'", key).WithHint("add 'async'='true', or remove it")
		}
	}
	retry := []string{"retry-predicate", "retry-strategy", "fixed-delay", "max-attempts"}
	some := slices.ContainsFunc(retry, func(k string) bool { _, ok := given[k]; return ok })
	for _, key := range retry {
		if _, ok := given[key]; some && !ok {
			return diag.New(diag.Semantic, h.Pos, "hint LOOKUP: '%s' is missing", key).WithDetail("a retry needs all of %s", strings.Join(retry, ", ")).
				WithHint("write 'retry-predicate'='lookup_miss', 'retry-strategy'='fixed_delay', 'fixed-delay'='10 s', 'max-attempts'='3'")
		}
	}
	if l[out.name.Text] != nil {
		return diag.New(diag.Semantic, out.name.Pos, "hint LOOKUP names %s twice", out.name.Text)
	}
	l[out.name.Text] = out
	return nil
}

func (h *lookupHint) set(o sql.Option) error {
	bad := func(want string) error {
		return diag.New(diag.Semantic, o.ValuePos, "hint LOOKUP: '%s' is not valid for '%s'", o.Value, o.Key).WithHint("%s", want)
	}
	value := strings.ToLower(strings.TrimSpace(o.Value))
	switch o.Key {
	case "table":
		h.name = sql.Name{Text: o.Value, Pos: o.ValuePos}
	case "async", "shuffle":
		if value != "true" && value != "false" {
			return bad("write 'true' or 'false'")
		}
		if o.Key == "async" {
			h.async = value == "true"
		} else if value == "true" {
			return diag.New(diag.Unsupported, o.KeyPos, "hint LOOKUP: 'shuffle' is not supported").
				WithDetail("all subtasks share one cache, so there is nothing to gain from an exchange by key").WithHint("remove 'shuffle'")
		}
	case "output-mode":
		if value != "ordered" && value != "allow_unordered" {
			return bad("write 'ordered' or 'allow_unordered'")
		}
		h.unordered = value == "allow_unordered"
	case "capacity", "max-attempts":
		n, err := strconv.Atoi(value)
		if err != nil || n < 1 || n > 1<<20 {
			return bad("write a number from 1")
		}
		if o.Key == "capacity" {
			h.capacity = n
		} else {
			h.attempts = n
		}
	case "timeout", "fixed-delay":
		d, err := connectors.ParseDuration(value)
		if err != nil || d <= 0 {
			return bad("write a duration such as '10 s'")
		}
		if o.Key == "timeout" {
			h.timeout = d
		} else {
			h.delay = d
		}
	case "retry-predicate":
		if value != "lookup_miss" {
			return bad("'lookup_miss' is the only one")
		}
	case "retry-strategy":
		if value != "fixed_delay" {
			return bad("'fixed_delay' is the only one")
		}
	}
	return nil
}
