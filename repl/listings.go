package repl

import (
	"context"
	"fmt"
	"math"
	"path"
	"strings"

	"github.com/streamsql/streamsql"
	"github.com/streamsql/streamsql/sql/diag"
)

// list prints a table of texts.
func (s *Shell) list(names []string, rows [][]string, none string) error {
	if len(rows) == 0 {
		_, err := fmt.Fprintln(s.rows(), none)
		return err
	}
	var sb strings.Builder
	appendTable(&sb, names, rows, math.MaxInt)
	_, err := fmt.Fprint(s.rows(), sb.String())
	return err
}

// matchPattern matches * and ? ignoring case; no pattern matches everything.
func matchPattern(args []string, name string) bool {
	if len(args) == 0 {
		return true
	}
	ok, err := path.Match(strings.ToLower(args[0]), strings.ToLower(name))
	return ok && err == nil
}

func (s *Shell) objects(kind string, args []string) (rows [][]string) {
	for _, o := range s.Engine.Objects() {
		if (kind == "" || o.Kind == kind) && matchPattern(args, o.Name) {
			rows = append(rows, []string{o.Name, o.Kind, fmt.Sprint(len(s.Engine.Columns(o.Name)))})
		}
	}
	return rows
}

func (s *Shell) listObjects(_ context.Context, name string, args []string) error {
	kind := "table"
	if name == `\dv` || name == ".views" {
		kind = "view"
	}
	return s.list([]string{"name", "kind", "columns"}, s.objects(kind, args), "no "+kind+"s")
}

func (s *Shell) describe(ctx context.Context, name string, args []string) error {
	if len(args) == 0 {
		return s.list([]string{"name", "kind", "columns"}, s.objects("", nil), "no tables or views; CREATE TABLE makes one")
	}
	if strings.ContainsAny(args[0], "*?") {
		return s.list([]string{"name", "kind", "columns"}, s.objects("", args), "no tables or views of such a name")
	}
	if name != `\d+` && name != ".schema" {
		return s.sql(ctx, "DESCRIBE "+identifier(args[0]))
	}
	kind := "TABLE"
	for _, o := range s.Engine.Objects() {
		if o.Name == args[0] {
			kind = strings.ToUpper(o.Kind)
		}
	}
	return s.sql(ctx, "SHOW CREATE "+kind+" "+identifier(args[0]))
}

// identifier quotes a name; dots separate its parts unless the user quoted it.
func identifier(name string) string {
	if strings.HasPrefix(name, "`") {
		return name
	}
	parts := strings.Split(name, ".")
	for i, p := range parts {
		parts[i] = "`" + strings.ReplaceAll(p, "`", "``") + "`"
	}
	return strings.Join(parts, ".")
}

func (s *Shell) listFunctions(_ context.Context, _ string, args []string) error {
	pattern := args
	if len(args) > 0 && !strings.ContainsAny(args[0], "*?[") {
		pattern = []string{args[0] + "*"}
	}
	var sb strings.Builder
	category := ""
	for _, f := range byCategory(s.Engine.Functions()) {
		if !matchPattern(pattern, f.Name) {
			continue
		}
		if f.Category != category {
			category = f.Category
			sb.WriteString(category + "\n")
		}
		fmt.Fprintf(&sb, "  %-44s %s\n", f.Usage, f.Doc)
	}
	if sb.Len() == 0 {
		sb.WriteString("no function of that name; \\df lists all\n")
	}
	_, err := fmt.Fprint(s.rows(), sb.String())
	return err
}

// byCategory groups functions, categories in order of their first function.
func byCategory(fs []streamsql.Function) []streamsql.Function {
	var order []string
	groups := map[string][]streamsql.Function{}
	for _, f := range fs {
		if groups[f.Category] == nil {
			order = append(order, f.Category)
		}
		groups[f.Category] = append(groups[f.Category], f)
	}
	out := make([]streamsql.Function, 0, len(fs))
	for _, c := range order {
		out = append(out, groups[c]...)
	}
	return out
}

func (s *Shell) listJobs(context.Context, string, []string) error {
	var rows [][]string
	for _, j := range s.Engine.Jobs() {
		st := j.Status()
		f := j.Flow(st)
		lag := ""
		if f.Lag >= 0 {
			lag = fmt.Sprint(f.Lag)
		}
		rows = append(rows, []string{j.ID(), j.Name(), st.State.String(), fmt.Sprint(f.In), fmt.Sprint(f.Out), fmt.Sprint(st.Checkpoint.Last), lag})
	}
	return s.list([]string{"job id", "job name", "status", "rows in", "rows out", "checkpoint", "lag"}, rows, "no jobs; INSERT INTO starts one")
}

func (s *Shell) listCheckpoints(ctx context.Context, _ string, args []string) error {
	if len(args) == 0 {
		return s.sql(ctx, "SHOW CHECKPOINTS")
	}
	return s.sql(ctx, "SHOW CHECKPOINTS FOR JOB "+quote(args[0]))
}

func (s *Shell) stopJob(ctx context.Context, _ string, args []string) error {
	if len(args) != 1 {
		return diag.New(diag.Syntax, diag.Pos{}, `\stop takes the id of a job, or the start of one`).WithHint(`\jobs lists them`)
	}
	return s.sql(ctx, "STOP JOB "+quote(args[0]))
}

// statementForms are the statements \h teaches: a form each.
var statementForms = []string{
	"CREATE [TEMPORARY] TABLE [IF NOT EXISTS] name (column TYPE [METADATA [FROM 'key'] [VIRTUAL]], column AS expression,\n    PRIMARY KEY (column) NOT ENFORCED, WATERMARK FOR column AS column - INTERVAL '5' SECOND) WITH ('connector' = '…', …)",
	"CREATE [TEMPORARY] TABLE name (…) WITH (…) LIKE other [(INCLUDING|EXCLUDING|OVERWRITING …)]",
	"CREATE [TEMPORARY] VIEW [IF NOT EXISTS] name [(column, …)] AS SELECT …",
	"DROP [TEMPORARY] TABLE|VIEW [IF EXISTS] name",
	"INSERT INTO table [(column, …)] SELECT … | VALUES (…), …",
	"EXECUTE STATEMENT SET BEGIN INSERT INTO …; INSERT INTO …; END",
	"SELECT [DISTINCT] … FROM table [AS alias] [WHERE …] [GROUP BY …] [HAVING …] [UNION ALL SELECT …]",
	"SELECT window_start, … FROM TABLE(TUMBLE(TABLE name, DESCRIPTOR(time column), INTERVAL '1' MINUTE)) GROUP BY window_start, window_end, …",
	"WITH name AS (SELECT …) SELECT …",
	"EXPLAIN SELECT … | INSERT INTO … | STATEMENT SET BEGIN … END",
	"DESCRIBE name",
	"SHOW TABLES | VIEWS | FUNCTIONS | JOBS | CHECKPOINTS [FOR JOB 'id'] | CREATE TABLE name | CREATE VIEW name | COLUMNS FROM name",
	"SET ['key' = 'value']",
	"RESET ['key']",
	"STOP JOB 'id' [WITH DRAIN]",
}

func (s *Shell) statementHelp(_ context.Context, _ string, args []string) error {
	want := strings.ToUpper(strings.Join(args, " "))
	var sb strings.Builder
	for _, f := range statementForms {
		if strings.HasPrefix(f, want) {
			sb.WriteString(f + ";\n")
		}
	}
	if sb.Len() == 0 {
		return diag.New(diag.Syntax, diag.Pos{}, "no statement starts with %q", want).WithHint(`\h lists all`)
	}
	_, err := fmt.Fprint(s.Out, sb.String())
	return err
}
