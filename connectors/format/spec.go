package format

import (
	"github.com/streamsql/streamsql/connectors"
	"github.com/streamsql/streamsql/sql/expr"
	"github.com/streamsql/streamsql/sql/types"
)

// Format is a message format: a value in the list of Lookup.
type Format struct {
	Name string
	Doc  string // one line
	// Options without prefix. The table's keys carry "json.", "value.json." or "key.json.".
	Options []connectors.Option
	// Metadata lists the read-only metadata columns the format can supply. Kafka shows them as "value.<key>".
	Metadata []connectors.MetadataColumn
	// Source is the changelog mode of decoded rows, Sink what the encoder can express: AppendOnly for formats that
	// hold plain rows.
	Source, Sink types.ChangelogMode
	// ReadsFields says that the decoder takes Targets with a Path.
	ReadsFields bool
	// Check refuses options and column types that cannot work, for one use, before anything runs. v is a Sub view with
	// the format's prefix.
	Check func(s *types.Schema, v *connectors.Values, use connectors.Use) error
	// NewDecoder makes a decoder; NewEncoder an encoder. Check has passed.
	NewDecoder func(spec DecodeSpec) (Decoder, error)
	NewEncoder func(spec EncodeSpec) (Encoder, error)
}

// Target sends field Field of the message to column Col of the builder. The types must be equal.
type Target struct {
	Field int // index into DecodeSpec.Schema
	// Path, for formats that read fields of ROWs, leads to the field inside Field that is wanted instead of it: positions,
	// outermost first. A field of a ROW that is NULL or missing is NULL. Nobody else may want Field, or a ROW on the way,
	// whole.
	Path []int
	Col  int // index into batch.Builder.Cols
}

// MetaTarget sends the format's metadata value Key to column Col of the builder. Type is the metadata type the format
// declares; a column declared with another type is cast by the planner.
type MetaTarget struct {
	Key string
	Col int
}

// DecodeSpec is what a decoder is made for.
type DecodeSpec struct {
	// Schema are the fields of the message in declared order, needed or not: csv is positional.
	Schema   *types.Schema
	Targets  []Target // the fields the query needs
	Metadata []MetaTarget
	Options  *connectors.Values // Sub view with the format's prefix
	Table    string             // for messages
	Session  expr.Session
}

// EncodeSpec is what an encoder is made for.
type EncodeSpec struct {
	// Schema are the fields to write, in order, by the names they have in the message.
	Schema *types.Schema
	// Columns[i] is the column of the batch that holds field i.
	Columns []int
	Options *connectors.Values
	Table   string
	Session expr.Session
}

// Stats counts what a decoder did beside decoding. Every decoder implements it; read it from the decoder's goroutine.
type Stats interface {
	// Skipped is the number of messages (or elements of a top-level array) dropped by ignore-parse-errors.
	Skipped() int64
	// Lenient is the number of values that were turned into NULL by ignore-parse-errors, or accepted only because Flink
	// does: a decimal that overflows, a fraction cut for an INT, a BOOLEAN from other text.
	Lenient() int64
}

// counts implements Stats.
type counts struct{ skipped, lenient int64 }

// Skipped implements Stats.
func (c *counts) Skipped() int64 { return c.skipped }

// Lenient implements Stats.
func (c *counts) Lenient() int64 { return c.lenient }
