package streamsql

import (
	"slices"
	"strconv"
	"strings"

	"github.com/streamsql/streamsql/catalog"
	"github.com/streamsql/streamsql/sql"
	"github.com/streamsql/streamsql/sql/diag"
	"github.com/streamsql/streamsql/sql/expr"
)

// showFunctions lists functions and aggregates; USER are those an embedding program registered, BUILTIN the others.
func (e *Engine) showFunctions(x *sql.Show) *Result {
	var names []string
	for _, d := range e.planner.Functions().Reference() {
		user := d.Group == userCategory
		if d.Kind != expr.OperatorEntry && (x.Kind == sql.ShowFunctions || user == (x.Kind == sql.ShowUserFunctions)) {
			names = append(append(names, d.Name), d.Aliases...)
		}
	}
	slices.Sort(names)
	return listed("function name", names, x)
}

// describeFunction answers DESCRIBE FUNCTION with Flink's rows, and behind them how the function is called, what it does and
// an example; EXTENDED has all examples.
func (e *Engine) describeFunction(x *sql.Describe) (*Result, error) {
	name := x.Path[0].Text
	if len(x.Path) > 1 {
		var err error
		if name, err = catalog.Resolve(x.Path); err != nil {
			return nil, err
		}
	}
	reg := e.planner.Functions()
	d, ok := reg.Describe(name)
	if !ok {
		err := diag.New(diag.Semantic, x.Path.Position(), "function %q does not exist", x.Path.Plain())
		if near := diag.Nearest(strings.ToUpper(name), reg.Names()); near != "" {
			return nil, err.WithHint("did you mean %s?", near)
		}
		return nil, err.WithHint("SHOW FUNCTIONS lists the functions there are")
	}
	user := d.Group == userCategory
	res := table("info name", "info value")
	res.add("is system function", strconv.FormatBool(!user))
	res.add("is temporary", strconv.FormatBool(user))
	if user {
		res.add("function language", "GO")
	}
	if !x.Extended {
		res.add("signature", d.Usage)
		if d.Doc != "" {
			res.add("description", d.Doc)
		}
		if len(d.Examples) > 0 {
			res.add("example", d.Examples[0].SQL+" → "+d.Examples[0].Result)
		}
		return res, nil
	}
	res.add("kind", d.Kind.String())
	res.add("requirements", "[]")
	res.add("is deterministic", strconv.FormatBool(d.Deterministic()))
	res.add("supports constant folding", strconv.FormatBool(d.Deterministic() && d.Kind == expr.ScalarEntry))
	res.add("signature", d.Usage)
	if d.Doc != "" {
		res.add("description", d.Doc)
	}
	for _, x := range d.Examples {
		res.add("example", x.SQL+" → "+x.Result)
	}
	return res, nil
}

// Function is a row of the function table. Kind is SCALAR or AGGREGATE.
type Function struct{ Name, Kind, Category, Usage, Doc string }

// Functions are the functions and aggregates a statement can call, sorted by name.
func (e *Engine) Functions() []Function {
	var out []Function
	for _, d := range e.planner.Functions().Reference() {
		if d.Kind != expr.OperatorEntry {
			out = append(out, Function{d.Name, d.Kind.String(), d.Group, d.Usage, d.Doc})
		}
	}
	slices.SortFunc(out, func(a, b Function) int { return strings.Compare(a.Name, b.Name) })
	return out
}
