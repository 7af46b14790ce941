package checkpoint

// OperatorInfo says what an operator's part of a checkpoint is, for people and for Compare. It decides nothing: whether
// state fits is decided by the identities.
type OperatorInfo struct {
	Kind string // "source", "sink", or the kind of operator, such as "aggregate"
	Name string // the operator as EXPLAIN shows it; the table of a source or sink
	// Keys are the columns that the state is kept by, Fields the columns that are in it or that it is made of.
	Keys   []FieldInfo `json:",omitempty"`
	Fields []FieldInfo `json:",omitempty"`
	// Reads are the sources and operators with state next below; Through are the operators without state in between, as
	// EXPLAIN shows them.
	Reads   []OperatorID `json:",omitempty"`
	Through []string     `json:",omitempty"`
}

// FieldInfo is a column: its name and its type in SQL.
type FieldInfo struct {
	Name, Type string
}

// JobInfo names the job that made a checkpoint.
type JobInfo struct {
	ID   string // of its directory below jobs/
	Name string // pipeline.name
}

// Origin is a checkpoint of another lineage that a lineage began from.
type Origin struct {
	Lineage string
	ID      ID
}

// The kinds of operators that every plan has.
const (
	KindSource = "source"
	KindSink   = "sink"
)
