package sql

import "github.com/streamsql/streamsql/sql/diag"

// Query is a SELECT, a set operation, VALUES, or WITH around one.
type Query interface {
	Node
	query()
}

// The queries. Tail holds ORDER BY and the limits that belong to the whole query, whatever its kind.
type (
	// Select is one SELECT block. From is nil without FROM. TABLE t as a query is SELECT * FROM t.
	Select struct {
		Place
		Hints    []Hint
		Distinct bool
		Items    []SelectItem
		From     TableRef
		Where    Expr
		GroupBy  []GroupItem // nil without GROUP BY; GROUP BY () is one item without expressions
		Having   Expr
		Windows  []NamedWindow
		Qualify  Expr
		Tail
	}
	// SetOp is L UNION|INTERSECT|EXCEPT [ALL] R. INTERSECT has bound tighter already.
	SetOp struct {
		Place // of the operator word
		Op    string
		All   bool
		L, R  Query
		Tail
	}
	// Values is VALUES row, ..: each row has at least one expression. VALUES 1, 2 is two rows of one column.
	Values struct {
		Place
		Rows [][]Expr
		Tail
	}
	// With is WITH ctes Query.
	With struct {
		Place
		CTEs  []CTE
		Query Query
	}
)

// SelectItem is an expression, possibly a *Star, with its alias or nil.
type SelectItem struct {
	X     Expr
	Alias *Name
}

// Tail is ORDER BY, LIMIT, OFFSET and FETCH. A nil number is an absent clause; FETCH is stored as Limit.
type Tail struct {
	Order         []OrderItem
	Limit, Offset *Literal // LitInteger
}

// IsZero reports that no clause is present.
func (t Tail) IsZero() bool { return t.Order == nil && t.Limit == nil && t.Offset == nil }

// CTE is one named query of WITH; Columns is nil without a column list.
type CTE struct {
	Name    Name
	Columns []Name
	Query   Query
}

// GroupKind is the kind of a grouping element.
type GroupKind uint8

// The grouping elements.
const (
	GroupExprs  GroupKind = iota // a, (a, b) or (): Exprs
	GroupSets                    // GROUPING SETS (Items)
	GroupRollup                  // ROLLUP (Items)
	GroupCube                    // CUBE (Items)
)

// GroupItem is one element of GROUP BY.
type GroupItem struct {
	Place
	Kind  GroupKind
	Exprs []Expr
	Items []GroupItem
}

// NamedWindow is one element of the WINDOW clause.
type NamedWindow struct {
	Name   Name
	Window *Window
}

func (*Select) query() {}
func (*SetOp) query()  {}
func (*Values) query() {}
func (*With) query()   {}

// TableRef is an element of FROM.
type TableRef interface {
	Node
	tableRef()
}

// Alias is [AS] name [(columns)]; Name is nil without an alias.
type Alias struct {
	Name    *Name
	Columns []Name
}

// JoinKind is the kind of a join.
type JoinKind uint8

// The joins. CommaJoin is FROM a, b: as in Flink it is left-deep with the other joins.
const (
	InnerJoin JoinKind = iota
	LeftJoin
	RightJoin
	FullJoin
	CrossJoin
	CommaJoin
)

var joinNames = [...]string{"INNER", "LEFT", "RIGHT", "FULL", "CROSS", "COMMA"}

// String is INNER, LEFT, RIGHT, FULL, CROSS or COMMA.
func (k JoinKind) String() string { return joinNames[k] }

// The table references.
type (
	// Table is a named table or view, with FOR SYSTEM_TIME AS OF AsOf (nil when absent).
	Table struct {
		Place
		Path  Path
		Hints []Hint
		AsOf  Expr
		Alias
	}
	// Derived is a query in FROM.
	Derived struct {
		Place
		Query   Query
		Lateral bool
		Alias
	}
	// TableFunc is TABLE(f(..)), LATERAL TABLE(f(..)) or f(..) in FROM, window functions such as TUMBLE included.
	// Arguments may be *TableArg, *Descriptor and *NamedArg; a query without PARTITION BY is a *Subquery.
	TableFunc struct {
		Place
		Call    *Call
		Lateral bool
		Alias
	}
	// Unnest is UNNEST(X) [WITH ORDINALITY].
	Unnest struct {
		Place
		X          Expr
		Ordinality bool
		Alias
	}
	// Join is L kind JOIN R. On and Using are both absent for CROSS, COMMA and NATURAL joins, else exactly one is set.
	Join struct {
		Place   // of the join words or the comma
		Kind    JoinKind
		Natural bool
		L, R    TableRef
		On      Expr
		Using   []Name
	}
	// MatchRecognize is table MATCH_RECOGNIZE (..). Pattern is kept as written, with its parentheses.
	MatchRecognize struct {
		Place
		Input       TableRef
		Partition   []Expr
		Order       []OrderItem
		Measures    []Measure
		AllRows     bool   // ALL ROWS PER MATCH
		RowsSet     bool   // ONE ROW or ALL ROWS PER MATCH was written
		AfterMatch  string // PAST LAST ROW, TO NEXT ROW, TO, TO FIRST, TO LAST; "" when absent
		SkipTo      *Name
		Pattern     string
		PatternPos  diag.Pos
		Within      *Interval
		Subsets     []Subset
		Definitions []Definition
		Alias
	}
)

// Measure is one element of MEASURES: X AS Name; Semantics is "", FINAL or RUNNING.
type Measure struct {
	Semantics string
	X         Expr
	Name      Name
}

// Subset is SUBSET Name = (Of, ..).
type Subset struct {
	Name Name
	Of   []Name
}

// Definition is one element of DEFINE: Name AS Cond.
type Definition struct {
	Name Name
	Cond Expr
}

func (*Table) tableRef()          {}
func (*Derived) tableRef()        {}
func (*TableFunc) tableRef()      {}
func (*Unnest) tableRef()         {}
func (*Join) tableRef()           {}
func (*MatchRecognize) tableRef() {}
