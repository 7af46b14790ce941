package sql

import (
	"github.com/streamsql/streamsql/sql/diag"
	"github.com/streamsql/streamsql/sql/types"
)

// Stmt is one statement of a script.
type Stmt interface {
	Node
	stmt()
}

// ColumnKind says where the values of a declared column come from.
type ColumnKind uint8

// The column kinds.
const (
	PhysicalColumn ColumnKind = iota // stored in the external system
	ComputedColumn                   // c AS expr
	MetadataColumn                   // c TYPE METADATA [FROM 'key'] [VIRTUAL]
)

// ColumnDef is one column of CREATE TABLE or ALTER TABLE.
type ColumnDef struct {
	Name    Name
	Kind    ColumnKind
	Type    types.Type // not for ComputedColumn; Nullable is false for NOT NULL
	TypePos diag.Pos
	// NullSet reports that NULL was written: a primary key column so declared is an error.
	NullSet     bool
	Expr        Expr   // ComputedColumn
	ExprText    string // ComputedColumn: the expression as written
	MetadataKey string // MetadataColumn; "" means the column's own name
	Virtual     bool   // MetadataColumn
	Comment     string
	// First and After place the column in ALTER TABLE ADD and MODIFY.
	First bool
	After *Name
}

// PrimaryKey is PRIMARY KEY (..) NOT ENFORCED at column or table level. Name is nil without CONSTRAINT.
type PrimaryKey struct {
	Place
	Name    *Name
	Columns []Name
}

// WatermarkDef is WATERMARK FOR Column AS Expr.
type WatermarkDef struct {
	Place
	Column   Path
	Expr     Expr
	ExprText string // as written
}

// Distribution is DISTRIBUTED BY [HASH|RANGE] (columns) INTO n BUCKETS, or DISTRIBUTED INTO n BUCKETS.
type Distribution struct {
	Place
	Kind    string // "", HASH, RANGE
	Columns []Name
	Buckets string // digits, "" when absent
}

// LikeOption is one feature option of CREATE TABLE LIKE.
type LikeOption struct {
	Pos      diag.Pos
	Strategy string // INCLUDING, EXCLUDING, OVERWRITING
	Feature  string // ALL, CONSTRAINTS, DISTRIBUTION, GENERATED, METADATA, OPTIONS, PARTITIONS, WATERMARKS
}

// LikeClause is LIKE Table (options).
type LikeClause struct {
	Place
	Table   Path
	Options []LikeOption
}

// The statements that define objects.
type (
	// CreateTable is CREATE [TEMPORARY] TABLE. It may combine columns with LIKE or with AS query, not both of these.
	CreateTable struct {
		Place
		Path         Path
		Temporary    bool
		IfNotExists  bool
		Columns      []ColumnDef
		PrimaryKey   *PrimaryKey
		Watermark    *WatermarkDef
		Comment      string
		Distribution *Distribution
		PartitionBy  []Name
		Options      []Option
		Like         *LikeClause
		// Names is the list of CREATE TABLE t (a, b) AS query, which only reorders the query's columns.
		Names []Name
		As    Query
	}
	// CreateView is CREATE [TEMPORARY] VIEW. QueryText is the query as written.
	CreateView struct {
		Place
		Path        Path
		Temporary   bool
		IfNotExists bool
		Columns     []Name
		Comment     string
		Query       Query
		QueryText   string
	}
	// CreateFunction is CREATE [TEMPORARY [SYSTEM]] FUNCTION f AS 'class' LANGUAGE x USING JAR 'uri'.
	CreateFunction struct {
		Place
		Path        Path
		Temporary   bool
		System      bool
		IfNotExists bool
		Class       string
		Language    string
		Jars        []string
	}
	// CreateDatabase is CREATE DATABASE [IF NOT EXISTS] d [COMMENT ..] [WITH (..)].
	CreateDatabase struct {
		Place
		Path        Path
		IfNotExists bool
		Comment     string
		Options     []Option
	}
	// Drop is DROP [TEMPORARY] kind [IF EXISTS] path. Cascade is for DATABASE only.
	Drop struct {
		Place
		Kind      ObjectKind
		Path      Path
		Temporary bool
		System    bool // DROP TEMPORARY SYSTEM FUNCTION
		IfExists  bool
		Cascade   bool
	}
	// AlterTable is ALTER TABLE [IF EXISTS] path action.
	AlterTable struct {
		Place
		Path     Path
		IfExists bool
		Action   AlterAction
	}
	// AlterView is ALTER VIEW path RENAME TO NewName, or AS Query; exactly one is set.
	AlterView struct {
		Place
		Path      Path
		NewName   Path
		Query     Query
		QueryText string
	}
	// AlterDatabase is ALTER DATABASE path SET (..).
	AlterDatabase struct {
		Place
		Path    Path
		Options []Option
	}
)

// ObjectKind is what DROP removes.
type ObjectKind uint8

// The object kinds.
const (
	TableObject ObjectKind = iota
	ViewObject
	FunctionObject
	DatabaseObject
)

var objectNames = [...]string{"TABLE", "VIEW", "FUNCTION", "DATABASE"}

// String is TABLE, VIEW, FUNCTION or DATABASE.
func (k ObjectKind) String() string { return objectNames[k] }

// AlterAction is what ALTER TABLE does.
type AlterAction interface {
	Node
	alter()
}

// The actions of ALTER TABLE.
type (
	// RenameTable is RENAME TO NewName.
	RenameTable struct {
		Place
		NewName Path
	}
	// RenameColumn is RENAME From TO To.
	RenameColumn struct {
		Place
		From Path
		To   Name
	}
	// AddElements is ADD (..) or ADD element; Modify makes it MODIFY.
	AddElements struct {
		Place
		Modify       bool
		Columns      []ColumnDef
		PrimaryKey   *PrimaryKey
		Watermark    *WatermarkDef
		Distribution *Distribution
	}
	// DropColumns is DROP c or DROP (c, ..).
	DropColumns struct {
		Place
		Columns []Path
	}
	// DropPrimaryKey is DROP PRIMARY KEY, or DROP CONSTRAINT Name.
	DropPrimaryKey struct {
		Place
		Name *Name
	}
	// DropWatermark is DROP WATERMARK.
	DropWatermark struct{ Place }
	// SetOptions is SET ('k' = 'v', ..).
	SetOptions struct {
		Place
		Options []Option
	}
	// ResetOptions is RESET ('k', ..); values are empty.
	ResetOptions struct {
		Place
		Options []Option
	}
)

// ShowKind is what SHOW lists.
type ShowKind uint8

// The kinds of SHOW.
const (
	ShowTables ShowKind = iota
	ShowViews
	ShowCreateTable
	ShowCreateView
	ShowFunctions
	ShowUserFunctions
	ShowBuiltinFunctions
	ShowJobs
	ShowCheckpoints
	ShowCatalogs
	ShowDatabases
	ShowColumns
	ShowCurrentCatalog
	ShowCurrentDatabase
	ShowPartitions
	ShowModules
	ShowFullModules
	ShowJars
)

var showNames = [...]string{"TABLES", "VIEWS", "CREATE TABLE", "CREATE VIEW", "FUNCTIONS", "USER FUNCTIONS", "BUILTIN FUNCTIONS", "JOBS",
	"CHECKPOINTS", "CATALOGS", "DATABASES", "COLUMNS", "CURRENT CATALOG", "CURRENT DATABASE", "PARTITIONS", "MODULES", "FULL MODULES",
	"JARS"}

// String is the words after SHOW.
func (k ShowKind) String() string { return showNames[k] }

// The statements that ask and set.
type (
	// Show is SHOW kind. Path is the object of SHOW CREATE, SHOW COLUMNS and SHOW PARTITIONS, or the database of FROM; Job is
	// that of SHOW CHECKPOINTS FOR JOB 'id', "" = all.
	Show struct {
		Place
		Kind    ShowKind
		Path    Path
		Job     string
		Like    string // the pattern; set only when HasLike
		HasLike bool
		ILike   bool
		NotLike bool
	}
	// Describe is DESCRIBE|DESC [EXTENDED] path, DESCRIBE FUNCTION [EXTENDED] path, or DESCRIBE JOB 'id'.
	Describe struct {
		Place
		Path     Path
		Extended bool
		Function bool // Path is a function's name
		Job      string
	}
	// Use is USE [catalog.]database, or USE CATALOG catalog.
	Use struct {
		Place
		Catalog bool
		Path    Path
	}
	// Set is SET 'key' = 'value'; without Option it lists the settings.
	Set struct {
		Place
		Option *Option
	}
	// Reset is RESET 'key'; Key is "" for RESET alone, which restores all settings.
	Reset struct {
		Place
		Key    string
		KeyPos diag.Pos
	}
	// StopJob is STOP JOB 'id' [WITH SAVEPOINT] [WITH DRAIN].
	StopJob struct {
		Place
		ID        string
		Savepoint bool
		Drain     bool
	}
	// ClientCommand is QUIT, EXIT, CLEAR or HELP: a word for the client.
	ClientCommand struct {
		Place
		Word string
	}
)

// The statements that run.
type (
	// QueryStmt is a query as a statement. EXECUTE in front of a query or INSERT leaves no trace.
	QueryStmt struct {
		Place
		Query Query
	}
	// Insert is INSERT INTO|OVERWRITE Target [hints] [PARTITION (..)] [(Columns)] Query [ON CONFLICT DO DEDUPLICATE].
	Insert struct {
		Place
		Overwrite bool
		Target    Path
		Hints     []Hint
		Partition []PartitionSpec
		Columns   []Path
		Query     Query
		// Deduplicate: the last row of each primary key is written. ConflictPos is where that stands.
		Deduplicate bool
		ConflictPos diag.Pos
	}
	// StatementSet is EXECUTE STATEMENT SET BEGIN ..; END or BEGIN STATEMENT SET; ..; END. It may be empty.
	StatementSet struct {
		Place
		Inserts []*Insert
	}
	// Explain is EXPLAIN [PLAN FOR | details] Stmt. Stmt is *QueryStmt, *Insert, *StatementSet or a *CreateTable with As.
	Explain struct {
		Place
		Details []ExplainDetail
		Stmt    Stmt
	}
)

// PartitionSpec is k = v of PARTITION (..); Value is nil for a dynamic partition column.
type PartitionSpec struct {
	Column Name
	Value  *Literal
}

// ExplainDetail is one extra that EXPLAIN prints.
type ExplainDetail string

// The details of EXPLAIN.
const (
	ExplainCost      ExplainDetail = "ESTIMATED_COST"
	ExplainChangelog ExplainDetail = "CHANGELOG_MODE"
	ExplainJSON      ExplainDetail = "JSON_EXECUTION_PLAN"
	ExplainAdvice    ExplainDetail = "PLAN_ADVICE"
	// ExplainGuarantees is not Flink's: what each table written is worth after a failure, and why.
	ExplainGuarantees ExplainDetail = "GUARANTEES"
)

func (*CreateTable) stmt()    {}
func (*CreateView) stmt()     {}
func (*CreateFunction) stmt() {}
func (*CreateDatabase) stmt() {}
func (*Drop) stmt()           {}
func (*AlterTable) stmt()     {}
func (*AlterView) stmt()      {}
func (*AlterDatabase) stmt()  {}
func (*Show) stmt()           {}
func (*Describe) stmt()       {}
func (*Use) stmt()            {}
func (*Set) stmt()            {}
func (*Reset) stmt()          {}
func (*StopJob) stmt()        {}
func (*ClientCommand) stmt()  {}
func (*QueryStmt) stmt()      {}
func (*Insert) stmt()         {}
func (*StatementSet) stmt()   {}
func (*Explain) stmt()        {}

func (*RenameTable) alter()    {}
func (*RenameColumn) alter()   {}
func (*AddElements) alter()    {}
func (*DropColumns) alter()    {}
func (*DropPrimaryKey) alter() {}
func (*DropWatermark) alter()  {}
func (*SetOptions) alter()     {}
func (*ResetOptions) alter()   {}
