package expr

import (
	"slices"
	"strings"

	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/diag"
	"github.com/streamsql/streamsql/sql/types"
)

// Functions of an embedding program that are no scalar functions: table functions and aggregates.

// TableFunc is a function that makes rows of one row: LATERAL TABLE(f(x)) in FROM.
type TableFunc struct {
	Name     string // upper case
	Category string
	Usage    string
	Doc      string
	// Bind checks the arguments (count, types), coerces them and says what rows come out. Errors need no position.
	Bind func(c *CallSite) (BoundTable, error)
}

// BoundTable is the outcome of TableFunc.Bind.
type BoundTable struct {
	Args    []Expr         // coerced
	Columns []types.Column // of the rows; a FROM alias may rename them
	// NewEval makes an evaluator for one subtask.
	NewEval func(s Session) TableEval
}

// TableEval appends the rows that the function makes of physical row r of its evaluated arguments to out, whose columns
// are BoundTable.Columns: for each row one append to every column and RowDone. It is called for every row in order and
// must not keep args or out. An error fails the job with the row it happened at.
type TableEval func(args []*batch.Vec, r int, out *batch.Builder) *diag.Error

// UserAgg is an aggregate function of an embedding program. Its accumulator is bytes; NULL arguments are skipped.
type UserAgg struct {
	Name   string // upper case
	Usage  string
	Doc    string
	Params []types.Type // of the arguments; several reach Step as one ROW
	Result types.Type
	// Retracts reports that Step takes rows back out, with sign -1.
	Retracts bool
	// New makes an evaluator for one subtask.
	New func() UserAccumulator
}

// UserAccumulator computes a UserAgg. It keeps nothing between calls but memory to use again.
type UserAccumulator interface {
	// Step folds the argument at index i of v into accumulator acc (nil = no row yet), or takes it out with sign -1, and
	// returns the accumulator, valid until the next call, and the function's value then; nil stands for NULL.
	Step(acc []byte, v *batch.Vec, i int, sign int64) (next []byte, result *types.Datum, err error)
}

// UserArgs converts the arguments of a call of function name to the types of its parameters.
func UserArgs(name, usage string, params []types.Type, args []Expr) ([]Expr, error) {
	if len(args) != len(params) {
		return nil, diag.New(diag.Semantic, diag.Pos{}, "%s takes %d arguments, not %d", name, len(params), len(args)).WithHint("%s", usage)
	}
	out := make([]Expr, len(params))
	for i, p := range params {
		a, err := ImplicitCast(args[i], p.WithNull(args[i].Type().Nullable))
		if err != nil {
			return nil, diag.New(diag.Semantic, diag.Pos{}, "argument %d of %s", i+1, name).Wrap(err).WithHint("%s", usage)
		}
		out[i] = a
	}
	return out, nil
}

// RegisterTable adds table function f. A name that is taken is an error.
func (r *Registry) RegisterTable(f *TableFunc) error {
	if err := r.free(f.Name); err != nil {
		return err
	}
	if r.tables == nil {
		r.tables = map[string]*TableFunc{}
	}
	r.tables[strings.ToUpper(f.Name)] = f
	return nil
}

// LookupTable finds a table function by name in any case, nil when there is none.
func (r *Registry) LookupTable(name string) *TableFunc { return r.tables[strings.ToUpper(name)] }

// RegisterAgg adds aggregate f. A name that is taken is an error.
func (r *Registry) RegisterAgg(f *UserAgg) error {
	if err := r.free(f.Name); err != nil {
		return err
	}
	if r.aggs == nil {
		r.aggs = map[string]*UserAgg{}
	}
	r.aggs[strings.ToUpper(f.Name)] = f
	return nil
}

// LookupUserAgg finds an aggregate of the embedding program by name in any case, nil when there is none.
func (r *Registry) LookupUserAgg(name string) *UserAgg { return r.aggs[strings.ToUpper(name)] }

// free reports a name that a function has already.
func (r *Registry) free(name string) error {
	upper := strings.ToUpper(name)
	if r.funcs[upper] == nil && r.tables[upper] == nil && r.aggs[upper] == nil && !IsFlinkAgg(upper) && !slices.Contains(windowFuncs, upper) {
		return nil
	}
	return diag.New(diag.Semantic, diag.Pos{}, "function %s already exists", name).
		WithHint("register it under another name")
}

// windowFuncs are the names that FROM TABLE(...) has a meaning for.
var windowFuncs = []string{"TUMBLE", "HOP", "CUMULATE", "SESSION"}

// userEntries are the reference's entries of table functions and aggregates.
func (r *Registry) userEntries() []Entry {
	var out []Entry
	for _, f := range r.tables {
		out = append(out, Entry{Name: f.Name, Group: f.Category, Usage: f.Usage, Doc: f.Doc, Kind: TableEntry})
	}
	for _, f := range r.aggs {
		out = append(out, Entry{Name: f.Name, Group: "user", Usage: f.Usage, Doc: f.Doc, Kind: AggregateEntry})
	}
	slices.SortFunc(out, func(a, b Entry) int { return strings.Compare(a.Name, b.Name) })
	return out
}
