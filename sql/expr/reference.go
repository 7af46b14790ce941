package expr

import (
	"slices"
	"strings"
)

// The reference of what a scalar expression can be made of: operators, functions and aggregates, with examples that a
// test runs. docs/sql/functions.md, DESCRIBE FUNCTION and SHOW FUNCTIONS are made from it.

// EntryKind is what sort of thing a reference entry is.
type EntryKind uint8

// The kinds of entries.
const (
	OperatorEntry EntryKind = iota // syntax of its own: a = b, CAST, CASE
	ScalarEntry
	AggregateEntry
	TableEntry // of FROM
)

// String is Flink's name of the kind of function.
func (k EntryKind) String() string {
	return [...]string{"OTHER", "SCALAR", "AGGREGATE", "TABLE"}[k]
}

// Entry is one line of the reference.
type Entry struct {
	Name     string // upper case; of an operator its first word or sign
	Aliases  []string
	Group    string // one of the groups of Flink's page, such as "string"
	Usage    string
	Doc      string
	Kind     EntryKind
	Examples []Example
}

// Example is an expression with its value as results show it. SQL that starts with SELECT is a whole query of one value.
type Example struct{ SQL, Result string }

// groups are the sections of the page, in Flink's order.
var groups = []struct{ name, title string }{
	{"comparison", "Comparison"}, {"logical", "Logical"}, {"arithmetic", "Arithmetic"}, {"string", "Strings"},
	{"temporal", "Dates and times"}, {"conditional", "Conditional"}, {"conversion", "Type conversion"},
	{"collection", "Arrays and maps"}, {"JSON", "JSON"}, {"variant", "Variant"}, {"bitmap", "Bitmap"},
	{"construction", "Value construction"}, {"access", "Value access"}, {"hash", "Hashes"}, {"auxiliary", "Auxiliary"},
	{"catalog", "Catalog"}, {"aggregate", "Aggregates"}, {"over", "Window functions (OVER)"},
}

// Reference lists the operators, the functions of r and the aggregates, by group as Flink's page has them and by name
// within a group; operators come first.
func (r *Registry) Reference() []Entry {
	out := slices.Clone(operators)
	for _, f := range r.Functions() {
		out = append(out, Entry{Name: f.Name, Aliases: f.Aliases, Group: f.Category, Usage: f.Usage, Doc: f.Doc, Kind: ScalarEntry})
	}
	for _, a := range aggregateEntries {
		if listed(a) {
			out = append(out, a)
		}
	}
	out = append(out, r.userEntries()...)
	for i := range out {
		out[i].Examples = examplesOf(out[i])
	}
	order := map[string]int{}
	for i, g := range groups {
		order[g.name] = i
	}
	slices.SortStableFunc(out, func(a, b Entry) int { return order[a.Group] - order[b.Group] })
	return out
}

// Names are the names SHOW FUNCTIONS lists: of functions, their aliases and aggregates, sorted.
func (r *Registry) Names() []string {
	var out []string
	for _, e := range r.Reference() {
		if e.Kind != OperatorEntry {
			out = append(append(out, e.Name), e.Aliases...)
		}
	}
	slices.Sort(out)
	return out
}

// Describe finds the entry of a function or aggregate by name or alias in any case.
func (r *Registry) Describe(name string) (Entry, bool) {
	name = strings.ToUpper(name)
	for _, e := range r.Reference() {
		if e.Kind != OperatorEntry && (strings.ToUpper(e.Name) == name || slices.Contains(e.Aliases, name)) {
			return e, true
		}
	}
	return Entry{}, false
}

// Deterministic reports that equal arguments give equal results, whenever the function is called.
func (e Entry) Deterministic() bool {
	switch e.Name {
	case "RAND", "RAND_INTEGER", "UUID", "UNIX_TIMESTAMP":
		return false
	case "NOW", "PROCTIME", "LOCALTIMESTAMP":
		return false
	}
	return !strings.HasPrefix(e.Name, "CURRENT_") || e.Name == "CURRENT_DATABASE"
}

// examplesOf cuts the example lines of an entry.
func examplesOf(e Entry) []Example {
	key := e.Name
	if e.Kind == OperatorEntry {
		key = e.Usage
	}
	var out []Example
	for _, line := range strings.Split(strings.TrimSpace(examples[key]), "\n") {
		if sql, result, ok := strings.Cut(line, " → "); ok {
			out = append(out, Example{strings.TrimSpace(sql), result})
		}
	}
	return out
}
