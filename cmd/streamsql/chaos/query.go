package chaos

import (
	"context"
	"strings"

	"github.com/streamsql/streamsql"
)

// query runs a query over the shadows of a run, on an engine in memory, and gives the rows that its changes add up to.
func (r *runner) query(ctx context.Context, run, text string) (rows, error) {
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
		return rows{}, err
	}
	eng, err := streamsql.Open("", &streamsql.Options{Settings: r.settings(1), EmbeddedAddr: r.o.Embedded, Log: r.o.Log})
	if err != nil {
		return rows{}, err
	}
	defer eng.Close()
	for _, s := range steps {
		if s.Job != "" {
			continue
		}
		for script := eng.Script(s.Text); ; {
			if _, err := script.Next(ctx); err != nil {
				if isEOF(err) {
					break
				}
				return rows{}, err
			}
		}
	}
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
