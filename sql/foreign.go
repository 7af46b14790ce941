package sql

import (
	"slices"
	"strings"

	"github.com/streamsql/streamsql/sql/diag"
)

// foreignStatements are statements of other databases, by their first words, with what to do here.
var foreignStatements = []struct{ words, hint string }{
	{"FROM", "begin with SELECT: SELECT * FROM ..."},
	{"COMMIT", "there are no transactions to open or end: what a job writes is committed with its checkpoints"},
	{"ROLLBACK", "there are no transactions to open or end: what a job writes is committed with its checkpoints"},
	{"START TRANSACTION", "there are no transactions to open or end: what a job writes is committed with its checkpoints"},
	{"PREPARE", "there are no prepared statements; write the query with its values"},
	{"COPY", "CREATE TABLE with 'connector' = 'filesystem' for the file, then INSERT INTO the target SELECT * FROM it"},
	{"ATTACH", "CREATE TABLE names the external system in its options, such as 'connector' = 'jdbc'"},
	{"IMPORT", "CREATE TABLE names the external system in its options"},
	{"EXPORT", "INSERT INTO a table with 'connector' = 'filesystem'"},
	{"PRAGMA", "SET lists the settings, DESCRIBE name the columns of a table"},
	{"SUMMARIZE", "DESCRIBE name lists the columns of a table"},
	{"GRANT", "there are no users here; the external systems decide who may read and write"},
	{"REVOKE", "there are no users here; the external systems decide who may read and write"},
	{"VACUUM", "nothing needs it"},
	{"LOCK", "nothing needs it"},
	{"REPLACE", "INSERT INTO a table with a PRIMARY KEY replaces rows by key"},
	{"DECLARE", "there are no variables and cursors; a query runs until its input ends"},
	{"KILL", "STOP JOB 'id' stops a job; SHOW JOBS lists them"},
	{"PIVOT", "write an aggregate per column: SUM(x) FILTER (WHERE kind = 'a')"},
}

// foreignShows are what other databases show, with the statement here.
var foreignShows = map[string]string{
	"SCHEMAS": "SHOW DATABASES", "VARIABLES": "SET", "SETTINGS": "SET", "ALL": "SET", "PARAMETERS": "SET", "OPTIONS": "SET",
	"INDEX": "SHOW CREATE TABLE name", "INDEXES": "SHOW CREATE TABLE name", "KEYS": "SHOW CREATE TABLE name",
	"PROCESSLIST": "SHOW JOBS", "STREAMS": "SHOW TABLES", "QUERIES": "SHOW JOBS", "SOURCES": "SHOW TABLES", "SINKS": "SHOW TABLES",
	"FIELDS": "DESCRIBE name", "COLUMN": "SHOW COLUMNS FROM name", "TABLE": "SHOW TABLES", "VIEW": "SHOW VIEWS", "FUNCTION": "SHOW FUNCTIONS",
	"JOB": "SHOW JOBS",
}

// foreignStatement refuses a statement that belongs to another database.
func (p *parser) foreignStatement() {
	t := p.cur()
	for _, f := range foreignStatements {
		if p.accept(strings.Fields(f.words)...) {
			if f.words == "FROM" {
				p.failHint(t.pos, f.hint, "expected a statement, found the keyword FROM")
			}
			p.failHint(t.pos, f.hint, "%s does not exist in Flink SQL", f.words)
		}
	}
}

// explainForeign refuses the options other databases have behind EXPLAIN.
func (p *parser) explainForeign() {
	t := p.cur()
	switch {
	case t.is("ANALYZE"):
		p.failHint(t.pos, "write EXPLAIN for the plan; a running job tells its rows and lag in SHOW JOBS and \\jobs", "EXPLAIN ANALYZE does not exist in Flink SQL")
	case t.is("VERBOSE"), t.is("EXTENDED"), t.is("FORMATTED"):
		p.failHint(t.pos, "remove it: EXPLAIN prints the plans with changelog modes, keys and parallelism", "EXPLAIN %s does not exist in Flink SQL", t.up)
	}
}

// afterStar refuses what other dialects take behind * of a select list.
func (p *parser) afterStar() {
	t, n := p.cur(), p.peek(1)
	if (t.is("EXCEPT") || t.is("REPLACE") || t.is("EXCLUDE") || t.is("RENAME")) && n.op("(") && !p.parenQuery(p.i+1) {
		p.failHint(t.pos, "name the columns to take", "* %s (..) does not exist in Flink SQL", t.up)
	}
}

// groupAll refuses GROUP BY ALL and says which columns it would take.
func (p *parser) groupAll(items []SelectItem) {
	t := p.cur()
	if n := p.peek(1); !t.is("ALL") || !endsClause(n) {
		return
	}
	var names []string
	for _, it := range items {
		if c, ok := it.X.(*Ident); ok {
			names = append(names, c.Path.Plain())
		}
	}
	hint := "name what is not aggregated: GROUP BY a, b"
	if names != nil {
		hint = "write GROUP BY " + strings.Join(names, ", ")
	}
	p.failHint(t.pos, hint, "GROUP BY ALL does not exist in Flink SQL")
}

// endsClause reports that t cannot continue a list of expressions.
func endsClause(t *token) bool {
	return endsRow(t) || t.is("HAVING") || t.is("WINDOW") || t.is("QUALIFY")
}

// trailingComma is the hint for a comma with nothing behind it, "" when the token before is none.
func (p *parser) trailingComma() string {
	t := p.cur()
	if p.i == 0 || !p.toks[p.i-1].op(",") || !endsClause(t) && !t.is("FROM") && !t.is("WHERE") && !t.is("GROUP") {
		return ""
	}
	return "remove the comma at " + p.toks[p.i-1].pos.String() + ", or write what should follow it"
}

// nameHint says what to do about a reserved word in the place of what is wanted; quote is how to ask for quotes.
func (p *parser) nameHint(what, quote string) string {
	t := p.cur()
	if h := p.trailingComma(); h != "" {
		return h
	}
	begins := slices.Contains(clauses, t.up) || t.is("ON")
	switch next := p.peek(1); t.up {
	case "ORDER", "GROUP":
		begins = next.is("BY")
	case "VALUES":
		begins = next.op("(")
	}
	if begins {
		return "write " + what + " before " + t.up + ", or quote it as " + QuoteIdent(t.text) + " if it is a name"
	}
	return quote + QuoteIdent(t.text)
}

// unitHint is the interval that a literal such as '5 minutes' in front of the current token means.
func (p *parser) unitHint() string {
	const usual = "write the unit behind the number: INTERVAL '5' MINUTE"
	if p.i > 0 && p.toks[p.i-1].op("(") { // EXTRACT, CEIL, TIMESTAMPADD
		return "write YEAR, QUARTER, MONTH, WEEK, DAY, HOUR, MINUTE or SECOND there"
	}
	if p.i == 0 || p.toks[p.i-1].kind != tokString {
		return usual
	}
	f := strings.Fields(p.toks[p.i-1].text)
	if len(f) != 2 || strings.Trim(f[0], "0123456789") != "" {
		return usual
	}
	unit := strings.TrimSuffix(strings.ToUpper(f[1]), "S")
	for _, u := range []string{"SECOND", "MINUTE", "HOUR", "DAY", "WEEK", "MONTH", "QUARTER", "YEAR"} {
		if u == unit || len(unit) >= 3 && strings.HasPrefix(u, unit) || len(unit) == 1 && u[:1] == unit && unit != "M" {
			return "write INTERVAL " + QuoteString(f[0]) + " " + u
		}
	}
	return usual
}

// FileAsTable is the cause of the error for a file in the place of a table. Whoever can look at the file may replace the
// error's hint by the table it needs.
type FileAsTable struct{ Path string }

// Error is the path, quoted.
func (e *FileAsTable) Error() string { return QuoteString(e.Path) }

// FileError refuses a file where a table is needed.
func FileError(path string, pos diag.Pos) *diag.Error {
	return diag.New(diag.Semantic, pos, "a file cannot stand in the place of a table").Wrap(&FileAsTable{path}).
		WithHint("CREATE TABLE name (...) WITH ('connector' = 'filesystem', 'path' = %s, 'format' = '...'), then use the name", QuoteString(path))
}

// shellWords are the shell's commands for a script's reader: what a line that starts with a backslash means in SQL.
var shellWords = map[string]string{
	`\d`: "SHOW TABLES, or DESCRIBE name", `\d+`: "SHOW CREATE TABLE name", `\dt`: "SHOW TABLES", `\dv`: "SHOW VIEWS", `\df`: "SHOW FUNCTIONS",
	`\l`: "SHOW DATABASES", `\dn`: "SHOW DATABASES", `\set`: "SET 'key' = 'value'", `\jobs`: "SHOW JOBS", `\x`: "streamsql run -o json", `\i`: "streamsql run a.sql b.sql",
}

// shellHint tells what to write instead of a command of the shell.
func shellHint(rest string) string {
	word := rest
	if n := strings.IndexAny(word, " \t\r\n;"); n >= 0 {
		word = word[:n]
	}
	if len(word) < 2 {
		return "a backslash may stand only inside a string literal"
	}
	if w := shellWords[word]; w != "" {
		return word + " is a command of the shell, at the start of a line; in SQL write " + w
	}
	return "commands with a backslash are for the shell, at the start of a line; in SQL a backslash may stand only inside a string literal"
}
