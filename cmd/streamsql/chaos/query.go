package chaos

import (
	"context"
	"errors"
	"strings"

	"github.com/streamsql/streamsql"
	"github.com/streamsql/streamsql/sql"
	"github.com/streamsql/streamsql/sql/diag"
)

// engine is one in memory that knows the script's tables, with the shadows of a run in place of its sinks.
func (r *runner) engine(ctx context.Context, run string) (*streamsql.Engine, error) {
	edits := map[string][]edit{}
	for _, x := range r.job.sources {
		if x.edits != nil {
			edits[x.table.Name] = x.edits
		}
	}
	for _, k := range r.job.sinks {
		e := k.place.edits(run)
		switch k.table.Connector() {
		case "kafka":
			e = append(e, edit{"scan.startup.mode", "earliest-offset"}, edit{"scan.bounded.mode", "latest-offset"})
		case "upsert-kafka":
			e = append(e, edit{"scan.bounded.mode", "latest-offset"})
		}
		edits[k.table.Name] = e
	}
	steps, err := rewrite(r.o.Script, edits, r.job.names)
	if err != nil {
		return nil, err
	}
	eng, err := streamsql.Open("", &streamsql.Options{Settings: r.settings(1), EmbeddedAddr: r.o.Embedded, Log: r.o.Log})
	if err != nil {
		return nil, err
	}
	for _, s := range steps {
		if s.Job != "" {
			continue
		}
		for script := eng.Script(s.Text); ; {
			if _, err := script.Next(ctx); err != nil {
				if isEOF(err) {
					break
				}
				return nil, errors.Join(err, eng.Close())
			}
		}
	}
	return eng, nil
}

// plan refuses the user's query when it is none, or cannot be planned over the shadows of a run. Runs without faults take their
// time, and whoever mistyped a name should not have to wait for them.
func (r *runner) plan(ctx context.Context, run, text string) error {
	parsed, err := sql.ParseScript(text)
	if err != nil {
		return flagError("oracle", err)
	}
	if len(parsed) != 1 {
		return diag.New(diag.Config, diag.Pos{}, "flag --oracle holds %d statements", len(parsed)).WithHint("give one query, such as %s", anOracle)
	}
	if _, ok := parsed[0].Stmt.(*sql.QueryStmt); !ok {
		return diag.New(diag.Config, diag.Pos{}, "flag --oracle is not a query").WithHint("give one such as %s", anOracle)
	}
	eng, err := r.engine(ctx, run)
	if err != nil {
		return err
	}
	defer eng.Close()
	if _, err := eng.Explain(text); err != nil {
		return flagError("oracle", err)
	}
	return nil
}

const anOracle = `"SELECT COUNT(*), SUM(amount) FROM sink_table"`

// flagError is err, whose places are in the value of a flag and not in the script.
func flagError(flag string, err error) error {
	out := diag.New(diag.CodeOf(err), diag.Pos{}, "flag --%s", flag).Wrap(err)
	var d *diag.Error
	if errors.As(err, &d) {
		out.Detail, out.Hint = d.Detail, d.Hint
	}
	return out
}

// query runs a query over the shadows of a run and gives the rows that its changes add up to.
func (r *runner) query(ctx context.Context, run, text string) (rows, error) {
	eng, err := r.engine(ctx, run)
	if err != nil {
		return rows{}, err
	}
	defer eng.Close()
	res, err := eng.Exec(ctx, text)
	if err != nil {
		return rows{}, err
	}
	out := bagOf()
	for change, err := range res.Rows() {
		if err != nil {
			return rows{}, err
		}
		var cells []string
		for i := range change.Len() {
			text, null := change.Text(i)
			if null {
				text = "NULL"
			}
			cells = append(cells, change.Schema().Columns[i].Name+"="+text)
		}
		row := strings.Join(cells, ", ")
		if change.Kind.IsRetract() {
			out.bag[row]--
		} else {
			out.bag[row]++
		}
		if out.bag[row] == 0 {
			delete(out.bag, row)
		}
	}
	return out, ctx.Err()
}
