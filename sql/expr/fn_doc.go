package expr

import (
	"fmt"
	"slices"
	"strings"
)

// FunctionsDoc is docs/sql/functions.md: the page of operators, functions and aggregates.
func FunctionsDoc() string {
	var sb strings.Builder
	r := NewRegistry()
	all := r.Reference()
	counts := [3]int{}
	for _, e := range all {
		counts[e.Kind] += 1 + len(e.Aliases)
	}
	fmt.Fprintf(&sb, "# Functions\n\n"+
		"%d scalar functions, %d operators and %d aggregates. Names, types and results are those of Flink SQL 2.x. Unless a function says otherwise, a NULL\n"+
		"argument gives NULL, positions count code points from 1, and an error belongs to the row that has it: it names the\n"+
		"table, the offset and the value. `SHOW FUNCTIONS` lists the names, `DESCRIBE FUNCTION EXTENDED name` shows one of them.\n"+
		"This page is made from the function table, and the tests run every example.\n", counts[ScalarEntry], counts[OperatorEntry], counts[AggregateEntry])
	for _, g := range groups {
		head := fmt.Sprintf("\n## %s\n\n| function | result | example |\n|---|---|---|\n", g.title)
		for _, e := range all {
			if e.Group == g.name {
				fmt.Fprintf(&sb, "%s| %s | %s | %s |\n", head, docUsage(e), docCell(e.Doc), docExamples(e))
				head = ""
			}
		}
	}
	sb.WriteString(docRegex + docPatterns + docPaths + docDifferences)
	sb.WriteString("\n## Not supported\n\nFunctions of Flink SQL that are refused by name:\n\n| function | instead |\n|---|---|\n")
	for _, n := range r.missing() {
		fmt.Fprintf(&sb, "| `%s` | %s |\n", n, docCell(insteadOf(n)))
	}
	return sb.String()
}

// missing are the functions and aggregates of Flink that are refused, in order.
func (r *Registry) missing() []string {
	var out []string
	for _, n := range flinkFunctions {
		if r.Lookup(n) == nil {
			out = append(out, n)
		}
	}
	for _, a := range aggregateEntries {
		if !listed(a) {
			out = append(out, a.Name)
		}
	}
	slices.Sort(out)
	return out
}

func docUsage(e Entry) string {
	s := "`" + docCell(e.Usage) + "`"
	for _, a := range slices.Sorted(slices.Values(e.Aliases)) {
		s += ", `" + a + "`"
	}
	return s
}

func docExamples(e Entry) string {
	var parts []string
	for _, x := range e.Examples {
		parts = append(parts, docCode(x.SQL)+" → "+docCode(x.Result))
	}
	return strings.Join(parts, "<br>")
}

// docCode is s as code in a cell of a table.
func docCode(s string) string {
	if strings.Contains(s, "`") {
		return "`` " + docCell(s) + " ``"
	}
	return "`" + docCell(s) + "`"
}

func docCell(s string) string { return strings.ReplaceAll(s, "|", `\|`) }

// insteadOf says what to write in place of a function of Flink that streamsql does not have.
func insteadOf(name string) string {
	switch {
	case strings.HasPrefix(name, "BITMAP_"):
		return "there is no type BITMAP; count with COUNT(DISTINCT x), collect with ARRAY_AGG(DISTINCT x)"
	}
	if s := instead[name]; s != "" {
		return s
	}
	return "SHOW FUNCTIONS lists the functions there are"
}

var instead = map[string]string{
	"JSON_LENGTH":      "JSON_VALUE(x, '$.length()' RETURNING INTEGER)",
	"SOURCE_WATERMARK": "declare WATERMARK FOR ts AS ts - INTERVAL '5' SECOND in the table",
	"OBJECT_OF":        "CAST(ROW(a, b) AS ROW<x INT, y STRING>); there are no STRUCTURED types", "OBJECT_UPDATE": "ROW(a, b) with the new values",
	"PRINT":                  "INSERT INTO a table of the print connector",
	"STREAMRECORD_TIMESTAMP": "read the metadata column: ts TIMESTAMP_LTZ(3) METADATA FROM 'timestamp'",
}

const docRegex = `
## Regular expressions

Patterns have Java's syntax: classes with ranges, ` + "`&&`" + ` and nesting, ` + "`\\d \\w \\s \\h \\v \\R \\b`" + ` (of ASCII), ` + "`\\p{Alpha}`, `\\p{L}`, `\\p{IsGreek}`" + `,
greedy, lazy and possessive quantifiers, groups with and without names, back references, look-ahead, bounded look-behind,
atomic groups, ` + "`\\Q..\\E`" + `, and the flags i, s, m, x, u and d inside the pattern. Not supported are ` + "`\\G`, `\\X`, `\\N{..}`" + `, Unicode blocks
(` + "`\\p{InGreek}`" + `) and the flag U; such patterns are refused, never taken for something else.

Most patterns run in linear time. Those with look-around, back references, possessive quantifiers or loops over the empty
string run on a backtracking engine that gives up after a second per match with an error of the row.
`

const docPatterns = `
## Date and time patterns

TO_TIMESTAMP, TO_TIMESTAMP_LTZ and DATE_FORMAT of a TIMESTAMP take patterns of java.time: ` + "`y u M L d D E e a h H k K m s S A n N Q w Y G`" + `,
` + "`'text'`" + ` and optional parts in ` + "`[ ]`" + `. S is a digit of the fraction. TO_DATE, UNIX_TIMESTAMP, FROM_UNIXTIME and DATE_FORMAT of a
string take those of SimpleDateFormat and read leniently: numbers out of range roll over, text behind the match is ignored,
and S is a number of milliseconds. Names are English.
`

const docPaths = `
## JSON paths

` + "`lax $.name`, `strict $.name`" + `; without a word a path is strict. ` + "`$.a.b`, `$['a b']`, `$[0]`, `$[-1]`, `$[0,2]`, `$[1:3]`, `$[*]`, `$.*`, `$..name`" + `,
` + "`$[?(@.a > 1 && @.b == 'x')]`, `$.list.length()`" + `. A path that is strict and finds nothing, or a JSON null, is an error, which ON ERROR
turns into NULL by default; a lax one is empty.
`

const docDifferences = `
## Differences from Flink

Times before 1970 are rounded down, so their fields are those of the day they lie in. Strings are ordered by code points,
and LPAD, RPAD, OVERLAY and SPLIT with '' count code points, so that no character is cut in half. CONVERT_TZ with an
unknown zone gives NULL rather than GMT, TO_DATE with a pattern gives NULL for other text, TO_TIMESTAMP_LTZ of other text is
NULL without a pattern too. JSON_VALUE RETURNING applies ON ERROR when the value has another type. NaN is the greatest
number. Sine, tangent and their like may differ from Java's in the last digit.
`
