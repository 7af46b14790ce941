package planner

import (
	"strings"

	"github.com/streamsql/streamsql/exec/op"
	"github.com/streamsql/streamsql/sql/diag"
	"github.com/streamsql/streamsql/sql/expr"
)

// placeOver decides how the OVER windows that are left are computed: row by row as Flink does in streaming, or, where
// that cannot be and the input ends, at its end.
func (o *optimizer) placeOver(n Node) (Node, error) {
	return rewrite(n, func(n Node) (Node, error) {
		w, ok := n.(*Over)
		if !ok {
			return n, nil
		}
		err := w.streaming()
		if err == nil && (w.by() == op.OverByValue || !updating(w.In) || !bounded(w.In)) {
			return n, nil
		}
		if !bounded(w.In) {
			return nil, err
		}
		c := *w
		c.Final = true
		return &c, nil
	})
}

// streaming says why the window cannot be computed row by row, nil when it can.
func (n *Over) streaming() error {
	refuse := func(what, detail, hint string, args ...any) error {
		return diag.New(diag.Unsupported, n.Pos, "%s", what).WithDetail("%s", detail).WithHint(hint, args...)
	}
	const endless = "the input is unbounded, so the last row of a partition is never known"
	first := n.Calls[0]
	for _, c := range n.Calls {
		switch c.Func {
		case expr.OverLead, expr.OverNtile, expr.OverPercentRank, expr.OverCumeDist:
			hint := "bound the source (for kafka: 'scan.bounded.mode' = 'latest-offset')"
			if c.Func == expr.OverLead {
				hint = "look back with LAG, or bound the source (for kafka: 'scan.bounded.mode' = 'latest-offset')"
			}
			return refuse(c.Func.String()+" over an unbounded query is not supported", endless, "%s", hint)
		}
	}
	switch {
	case n.Windows > 1:
		return refuse("different OVER windows in one SELECT over an unbounded query are not supported",
			"all of them must have the same PARTITION BY, ORDER BY and frame; ROW_NUMBER counts ROWS, without a frame the other functions take RANGE",
			"write the same window for all, beside ROW_NUMBER with ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW; or nest subqueries")
	case len(n.Order) == 0:
		return refuse("an OVER window without ORDER BY over an unbounded query is not supported", endless,
			"add ORDER BY and a time attribute of the input, or aggregate by GROUP BY")
	case len(n.Order) > 1:
		return refuse("an OVER window with several ORDER BY columns over an unbounded query is not supported",
			"rows can be kept in the order of one column only", "order by one column; ROW_NUMBER with a filter (row_num <= N) can have several")
	case n.Order[0].Desc:
		return refuse("a descending OVER window over an unbounded query is not supported",
			"every new row would be before all others", "order ascending; ROW_NUMBER with a filter (row_num <= N) can be descending")
	case first.Frame.Hi != 0:
		return refuse("a frame that ends at FOLLOWING rows is not supported over an unbounded query",
			"a row leaves when it has come, with what came before it", "end the frame at CURRENT ROW")
	case n.by() == op.OverByValue:
		return n.streamingByValue(refuse)
	}
	return nil
}

func (n *Over) streamingByValue(refuse func(what, detail, hint string, args ...any) error) error {
	in := n.In.Fields()
	order := in[n.Order[0].Col].Name
	var times []string
	for _, f := range in {
		if f.Time != NoTime {
			times = append(times, f.Name)
		}
	}
	instead := "declare a WATERMARK on a time column of the table and order by it"
	if times != nil {
		instead = "order by the time attribute: ORDER BY " + strings.Join(times, " or ")
	}
	if !n.Calls[0].Frame.Running() {
		return refuse("a bounded OVER frame ordered by "+order+" is not supported",
			order+" is no time attribute: later rows can fall into frames of earlier ones", "%s, or begin the frame at UNBOUNDED PRECEDING", instead)
	}
	for _, c := range n.Calls {
		switch {
		case c.Func == expr.OverLag && updating(n.In):
			return refuse("LAG over a query that updates its rows is not supported", "a row it has looked at can be taken back",
				"apply LAG below what updates the rows")
		case c.Func == expr.OverAgg && (c.Agg.Distinct && c.Agg.Kind != expr.AggMin && c.Agg.Kind != expr.AggMax || c.Agg.KeepsValues()):
			return refuse(c.Agg.Text+" in an OVER window ordered by "+order+" is not supported",
				"it keeps every value, and would have to for every row", "%s", instead)
		}
	}
	return nil
}
