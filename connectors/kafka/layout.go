package kafka

import (
	"github.com/streamsql/streamsql/catalog"
	"github.com/streamsql/streamsql/connectors/format"
	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/diag"
	"github.com/streamsql/streamsql/sql/expr"
	"github.com/streamsql/streamsql/sql/types"
)

// layout is where the parts of a record are found among the columns a sink is given. -1 = none.
type layout struct {
	value, key []int // per field
	topic      int
	headers    int
	headerList int
	timestamp  int
}

// newLayout maps the table's columns to the columns of rows to write, by name: physical and writable metadata columns.
// rowtime is 1 + the column that dates records where no metadata column does, 0 for none.
func newLayout(x *table, schema *types.Schema, rowtime int) (*layout, error) {
	l := &layout{topic: -1, headers: -1, headerList: -1, timestamp: -1}
	find := func(fs []field) ([]int, error) {
		var out []int
		for _, f := range fs {
			i := schema.Index(x.t.Columns[f.col].Name)
			if i < 0 {
				return nil, diag.New(diag.Internal, diag.Pos{}, "table %s: column '%s' is missing among the columns to write", x.t.Name, x.t.Columns[f.col].Name)
			}
			out = append(out, i)
		}
		return out, nil
	}
	var err error
	if l.value, err = find(x.value); err != nil {
		return nil, err
	}
	if l.key, err = find(x.key); err != nil {
		return nil, err
	}
	for _, c := range x.t.Columns {
		if c.Kind != catalog.Metadata || c.Virtual {
			continue
		}
		i := schema.Index(c.Name)
		if i < 0 {
			return nil, diag.New(diag.Internal, diag.Pos{}, "table %s: column '%s' is missing among the columns to write", x.t.Name, c.Name)
		}
		m := x.metadata(c.Key)
		if t := schema.Columns[i].Type; t.Phys() != m.Type.Phys() || t.Kind != m.Type.Kind {
			return nil, diag.New(diag.Semantic, diag.Pos{}, "table %s: metadata column '%s' must have type %s to be written, not %s", x.t.Name, c.Name, m.Type, t).
				WithHint("declare it %s", m.Type)
		}
		switch c.Key {
		case "topic":
			l.topic = i
		case "headers":
			l.headers = i
		case "header-list":
			l.headerList = i
		case "timestamp":
			l.timestamp = i
		}
	}
	if l.timestamp < 0 {
		l.timestamp = rowtime - 1
	}
	return l, nil
}

// encoders makes the value encoder and the key encoder (nil without key format).
func (x *table) encoders(l *layout, session expr.Session) (value, key format.Encoder, err error) {
	value, err = x.fm.Value.NewEncoder(format.EncodeSpec{Schema: schemaOf(x.value), Columns: l.value,
		Options: x.v.Sub(x.fm.ValuePrefix), Table: x.t.Name, Session: session})
	if err != nil || x.fm.Key == nil {
		return value, nil, err
	}
	key, err = x.fm.Key.NewEncoder(format.EncodeSpec{Schema: schemaOf(x.key), Columns: l.key,
		Options: x.v.Sub(x.fm.KeyPrefix), Table: x.t.Name, Session: session})
	return value, key, err
}

// withoutKinds is b as rows of inserts: key formats, and the values of upsert-kafka, do not express changes.
func withoutKinds(b *batch.Batch, dst *batch.Batch) *batch.Batch {
	*dst = *b
	dst.Kinds = nil
	return dst
}
