package expr

import (
	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/diag"
	"github.com/streamsql/streamsql/sql/types"
)

// Func is a row of the function table: what SHOW FUNCTIONS lists, docs/sql/functions.md prints and NewCall binds.
type Func struct {
	Name     string   // upper case, Flink's name
	Aliases  []string // other names of the same function
	Category string   // Flink's category: "string", "temporal", "arithmetic", "collection", …
	Usage    string   // "SUBSTRING(string, start [, length])"
	Doc      string   // one or two sentences, with the edge cases
	// Bind checks the arguments (count, types), coerces them and says how to evaluate. Errors need no position.
	Bind func(c *CallSite) (Bound, error)
}

// UserCategory is the category of functions that the embedding program registers.
const UserCategory = "user"

// CallSite is a call being bound.
type CallSite struct {
	Name    string // as written
	Args    []Expr
	Options CallOptions
	Session Session
}

// CallOptions are the parts of a call that are not arguments.
type CallOptions struct {
	Unit   string      // EXTRACT, CEIL, FLOOR, TIMESTAMPADD, TIMESTAMPDIFF: "HOUR", …
	Words  []string    // keyword options in order: TRIM's LEADING, JSON's ON EMPTY clauses, …
	Return *types.Type // JSON_VALUE … RETURNING
}

// Bound is the outcome of Func.Bind.
type Bound struct {
	Args []Expr // coerced
	Type types.Type
	// Strict says that a NULL argument makes the result NULL; Eval then never sees such a row.
	Strict bool
	// Volatile functions give different results for equal arguments (RAND, UUID): never folded, never merged.
	Volatile bool
	// Dynamic functions give one result per batch (CURRENT_TIMESTAMP: Session.Instant): never folded, but merged.
	Dynamic bool
	// Key tells calls apart whose arguments and options are equal but which compute different things.
	Key string
	// Rewrite, if set, stands for the call; the other fields are ignored.
	Rewrite Expr
	// NewEval makes an evaluator for one Program; it may keep caches (compiled patterns).
	NewEval func(s Session) Eval
}

// Eval computes a function for the given physical rows. args[i] may be Const (use Vec.Idx); out has room for every row
// of the batch and all of the given rows valid; Eval stores results at the rows' positions and calls out.SetNull for
// NULL. n is the number of physical rows. It must not keep args or out. A failing row is reported with fail and
// skipped: an error counts only if the row's result is used.
type Eval func(args []*batch.Vec, rows []int32, n int, out *batch.Vec, fail func(row int32, err *diag.Error))

// Registry resolves function names. Functions registered by an embedding program shadow nothing: a clash is an error.
type Registry struct {
	funcs  map[string]*Func
	tables map[string]*TableFunc
	aggs   map[string]*UserAgg
}
