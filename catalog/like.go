package catalog

import (
	"github.com/streamsql/streamsql/sql"
	"github.com/streamsql/streamsql/sql/diag"
)

// The strategies of LIKE, per feature.
const (
	including   = "INCLUDING"
	excluding   = "EXCLUDING"
	overwriting = "OVERWRITING"
)

var likeFeatures = []string{"CONSTRAINTS", "DISTRIBUTION", "GENERATED", "METADATA", "OPTIONS", "PARTITIONS", "WATERMARKS"}

// overwritable are the features that OVERWRITING may name.
var overwritable = map[string]bool{"GENERATED": true, "METADATA": true, "OPTIONS": true, "WATERMARKS": true}

// likeStrategies resolves the option list: INCLUDING ALL and OVERWRITING OPTIONS by default, then ALL, then the rest.
func likeStrategies(l *sql.LikeClause) (map[string]string, error) {
	out := map[string]string{}
	for _, f := range likeFeatures {
		out[f] = including
	}
	out["OPTIONS"] = overwriting
	named := map[string]bool{}
	for _, o := range l.Options {
		if named[o.Feature] {
			return nil, diag.New(diag.Semantic, o.Pos, "LIKE names %s twice", o.Feature)
		}
		named[o.Feature] = true
		if o.Strategy == overwriting && !overwritable[o.Feature] {
			return nil, diag.New(diag.Semantic, o.Pos, "OVERWRITING %s is not possible", o.Feature).
				WithHint("OVERWRITING goes with GENERATED, METADATA, OPTIONS and WATERMARKS; use EXCLUDING %s", o.Feature)
		}
		if o.Feature == "ALL" {
			for _, f := range likeFeatures {
				out[f] = o.Strategy
			}
		}
	}
	for _, o := range l.Options {
		if o.Feature != "ALL" {
			out[o.Feature] = o.Strategy
		}
	}
	return out, nil
}

// mergeLike fills t with base's parts and the statement's own columns and options.
func mergeLike(t, base *Table, stmt *sql.CreateTable, own []Column, opts *Options) error {
	strat, err := likeStrategies(stmt.Like)
	if err != nil {
		return err
	}
	if err := mergeColumns(t, base, stmt, own, strat); err != nil {
		return err
	}
	if err := mergeOptions(t, base, opts, strat["OPTIONS"]); err != nil {
		return err
	}
	if base.Watermark != nil && strat["WATERMARKS"] != excluding {
		if stmt.Watermark != nil && strat["WATERMARKS"] == including {
			return diag.New(diag.Semantic, stmt.Watermark.Pos, "the base table %s has a watermark already", stmt.Like.Table.Plain()).
				WithHint("write LIKE %s (OVERWRITING WATERMARKS) or (EXCLUDING WATERMARKS)", stmt.Like.Table.Plain())
		}
		w := *base.Watermark
		t.Watermark = &w
	}
	if strat["CONSTRAINTS"] != excluding {
		t.PrimaryKey = append([]string(nil), base.PrimaryKey...)
	}
	if strat["PARTITIONS"] != excluding {
		t.Partitions = append([]string(nil), base.Partitions...)
	}
	return nil
}

// mergeColumns keeps base's columns at their places; own ones replace a computed or metadata column where the strategy
// allows, the rest follows.
func mergeColumns(t, base *Table, stmt *sql.CreateTable, own []Column, strat map[string]string) error {
	feature := map[ColumnKind]string{Computed: "GENERATED", Metadata: "METADATA"}
	at := map[string]int{}
	for _, c := range base.Columns {
		if f, ok := feature[c.Kind]; ok && strat[f] == excluding {
			continue
		}
		at[c.Name] = len(t.Columns)
		t.Columns = append(t.Columns, c)
	}
	for i, c := range own {
		j, clash := at[c.Name]
		if !clash {
			t.Columns = append(t.Columns, c)
			continue
		}
		old, pos, like := t.Columns[j], stmt.Columns[i].Name.Pos, stmt.Like.Table.Plain()
		f := feature[old.Kind]
		switch {
		case old.Kind != c.Kind || old.Kind == Physical:
			return diag.New(diag.Semantic, pos, "column %s exists in the base table %s as a %s column", c.Name, like, old.Kind).
				WithHint("remove it here: LIKE always takes the physical columns, and a column keeps its kind")
		case strat[f] == including:
			return diag.New(diag.Semantic, pos, "column %s exists in the base table %s already", c.Name, like).
				WithHint("write LIKE %s (OVERWRITING %s) or (EXCLUDING %s)", like, f, f)
		}
		t.Columns[j] = c
	}
	return nil
}

func mergeOptions(t, base *Table, opts *Options, strategy string) error {
	if strategy == excluding {
		t.Options = opts
		return nil
	}
	t.Options = base.Options.Clone()
	for _, k := range opts.Keys() {
		if _, clash := t.Options.Get(k); clash && strategy == including {
			return diag.New(diag.Semantic, opts.Pos(k), "option '%s' exists in the base table already", k).
				WithHint("write (OVERWRITING OPTIONS), the default, or (EXCLUDING OPTIONS)")
		}
		v, _ := opts.Get(k)
		t.Options.Set(k, v, opts.Pos(k))
	}
	return nil
}
