package streamsql

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/big"
	"time"

	"github.com/streamsql/streamsql/connectors/memory"
	"github.com/streamsql/streamsql/planner"
	"github.com/streamsql/streamsql/sql"
	"github.com/streamsql/streamsql/sql/diag"
	"github.com/streamsql/streamsql/sql/expr"
	"github.com/streamsql/streamsql/sql/types"
)

// Feed fills a table of connector 'memory' from the program. Rows sent are kept until a checkpoint of the job that
// reads them is durable, so that a restarted job reads them again.
type Feed struct {
	feed   *memory.Feed
	schema *types.Schema
}

// Feed opens the feed of a table whose connector is 'memory'.
func (e *Engine) Feed(table string) (*Feed, error) {
	name, schema, err := e.memoryTable(table)
	if err != nil {
		return nil, err
	}
	return &Feed{feed: e.bus.Feed(name), schema: schema}, nil
}

// Send adds a row, one value per physical column in declared order: the Go types of Row.Value, nil for NULL, and other
// integers and floats that fit. It blocks while the job is behind and returns the context's error when that ends first.
func (f *Feed) Send(ctx context.Context, values ...any) error {
	return f.SendChange(ctx, types.Insert, values...)
}

// SendChange is Send for tables declared with 'changelog' = 'upsert' or 'retract'.
func (f *Feed) SendChange(ctx context.Context, k RowKind, values ...any) error {
	if len(values) != f.schema.Len() {
		return fmt.Errorf("send: %d values for %d columns", len(values), f.schema.Len())
	}
	row := memory.Row{Kind: k, Values: make([]types.Datum, len(values))}
	for i, v := range values {
		d, err := datumOf(v, f.schema.Columns[i].Type)
		if err != nil {
			return fmt.Errorf("send: column %q: %w", f.schema.Columns[i].Name, err)
		}
		row.Values[i] = d
	}
	return f.feed.Send(ctx, 0, row)
}

// Close ends the table: a bounded job finishes when it has read every row.
func (f *Feed) Close() { f.feed.Close() }

// Queue reads a table of connector 'memory' that a job writes. A row is there once the checkpoint that holds it is
// committed, or at once with 'delivery' = 'at-least-once'.
type Queue struct {
	queue   *memory.Queue
	schema  *types.Schema
	session expr.Session
}

// Queue opens the queue of a table whose connector is 'memory'.
func (e *Engine) Queue(table string) (*Queue, error) {
	name, schema, err := e.memoryTable(table)
	if err != nil {
		return nil, err
	}
	return &Queue{queue: e.bus.Queue(name), schema: schema, session: e.Session()}, nil
}

// Next is the next row; it waits for one. When every job that writes the table has ended, the last row is followed by
// io.EOF, or by the error of the job that failed last. Starting a job that writes it makes Next wait again.
func (q *Queue) Next(ctx context.Context) (Change, error) {
	r, err := q.queue.Next(ctx)
	if err != nil {
		return Change{}, err
	}
	return Change{Kind: r.Kind, Row: Row{schema: q.schema, datums: r.Values, session: q.session}}, nil
}

// beginQueues opens the queues that a plan writes and returns their names.
func (e *Engine) beginQueues(plan *planner.Plan) (queues []string) {
	for _, s := range plan.Sinks {
		if name, _, err := e.memoryTable(s.Table); err == nil {
			e.bus.Queue(name).Begin()
			queues = append(queues, name)
		}
	}
	return queues
}

// endQueues ends them for a job that has ended.
func (e *Engine) endQueues(queues []string, err error) {
	if errors.Is(err, context.Canceled) {
		err = nil // stopped on purpose
	}
	for _, q := range queues {
		e.bus.Queue(q).End(err)
	}
}

func (e *Engine) memoryTable(name string) (bus string, schema *types.Schema, err error) {
	t, err := e.planner.Catalog().Table(sql.PathOf(name))
	if err != nil {
		return "", nil, err
	}
	if t.Connector() != "memory" {
		return "", nil, diag.New(diag.Semantic, diag.Pos{}, "table %q has connector %q; only tables of connector 'memory' are fed and read by the program", name, t.Connector())
	}
	bus = t.Name
	if n, ok := t.Options.Get("name"); ok {
		bus = n
	}
	return bus, t.PhysicalSchema(), nil
}

// datumOf converts a Go value to a value of type t.
func datumOf(v any, t types.Type) (types.Datum, error) {
	if v == nil {
		if !t.Nullable {
			return types.Datum{}, fmt.Errorf("NULL in a column of type %s", t)
		}
		return types.NullDatum, nil
	}
	switch t.Kind {
	case types.Boolean:
		if b, ok := v.(bool); ok {
			return types.BoolDatum(b), nil
		}
	case types.TinyInt, types.SmallInt, types.Int, types.BigInt:
		if i, ok := toInt(v); ok {
			if bits := map[types.Kind]uint{types.TinyInt: 8, types.SmallInt: 16, types.Int: 32, types.BigInt: 64}[t.Kind]; i<<(64-bits)>>(64-bits) != i {
				return types.Datum{}, fmt.Errorf("%d is out of the range of %s", i, t)
			}
			return types.IntDatum(i), nil
		}
	case types.Float, types.Double:
		if f, ok := toFloat(v); ok {
			if t.Kind == types.Float {
				f = float64(float32(f))
			}
			return types.FloatDatum(f), nil
		}
	case types.Char, types.Varchar:
		if s, ok := v.(string); ok {
			return types.StrDatum(s), nil
		}
	case types.Binary, types.Varbinary:
		if b, ok := v.([]byte); ok {
			return types.StrDatum(string(b)), nil
		}
	case types.Decimal:
		return decimalDatum(v, t)
	case types.Date, types.Timestamp, types.TimestampLTZ:
		if at, ok := v.(time.Time); ok {
			return timeDatum(at, t), nil
		}
	case types.Time, types.IntervalDayTime:
		if d, ok := v.(time.Duration); ok {
			return types.IntDatum(d.Milliseconds()), nil
		}
	case types.IntervalYearMonth:
		if m, ok := v.(Months); ok {
			return types.IntDatum(int64(m)), nil
		}
	case types.Array, types.Row:
		return listDatum(v, t)
	case types.Map:
		return mapDatum(v, t)
	}
	return types.Datum{}, fmt.Errorf("a %T is no %s", v, t)
}

func toInt(v any) (int64, bool) {
	switch x := v.(type) {
	case int:
		return int64(x), true
	case int8:
		return int64(x), true
	case int16:
		return int64(x), true
	case int32:
		return int64(x), true
	case int64:
		return x, true
	case uint8:
		return int64(x), true
	case uint16:
		return int64(x), true
	case uint32:
		return int64(x), true
	case uint64:
		return int64(x), x <= math.MaxInt64
	}
	return 0, false
}

func toFloat(v any) (float64, bool) {
	switch x := v.(type) {
	case float64:
		return x, true
	case float32:
		return float64(x), true
	}
	i, ok := toInt(v)
	return float64(i), ok
}

func decimalDatum(v any, t types.Type) (types.Datum, error) {
	var d Decimal
	switch x := v.(type) {
	case Decimal:
		d = x
	case string:
		u, ok := types.ParseDecimal(x, t.Precision, t.Scale)
		if !ok {
			return types.Datum{}, fmt.Errorf("%q is no %s", x, t)
		}
		d = Decimal{u.Big(), t.Scale}
	default:
		i, ok := toInt(v)
		if !ok {
			return types.Datum{}, fmt.Errorf("a %T is no %s: use Decimal, a string or an integer", v, t)
		}
		d = Decimal{Unscaled: big.NewInt(i)}
	}
	u, ok := types.I128FromBig(d.Unscaled)
	if ok {
		u, ok = types.Rescale(u, d.Scale, t.Scale, t.Precision)
	}
	if !ok {
		return types.Datum{}, fmt.Errorf("%s does not fit %s", d, t)
	}
	if t.Phys() == types.PhysI64 {
		return types.IntDatum(u.Int64()), nil
	}
	return types.I128Datum(u), nil
}

// timeDatum takes the wall clock of at for DATE and TIMESTAMP, the instant for TIMESTAMP_LTZ.
func timeDatum(at time.Time, t types.Type) types.Datum {
	sec, nanos := at.Unix(), int64(at.Nanosecond())
	if t.Kind != types.TimestampLTZ {
		_, off := at.Zone()
		sec += int64(off)
	}
	if t.Kind == types.Date {
		return types.IntDatum(types.FloorDiv(sec, 86400))
	}
	return types.JoinTimestamp(sec, nanos, t.Precision)
}

func listDatum(v any, t types.Type) (types.Datum, error) {
	list, ok := v.([]any)
	if !ok {
		return types.Datum{}, fmt.Errorf("a %T is no %s: use []any", v, t)
	}
	if t.Kind == types.Row && len(list) != len(t.Fields) {
		return types.Datum{}, fmt.Errorf("%d values for %d fields of %s", len(list), len(t.Fields), t)
	}
	out := types.Datum{List: make([]types.Datum, len(list))}
	for i, x := range list {
		et := t.Elem
		if t.Kind == types.Row {
			et = &t.Fields[i].Type
		}
		d, err := datumOf(x, *et)
		if err != nil {
			return types.Datum{}, fmt.Errorf("element %d: %w", i+1, err)
		}
		out.List[i] = d
	}
	return out, nil
}

func mapDatum(v any, t types.Type) (types.Datum, error) {
	kvs, ok := v.([]KeyValue)
	if !ok {
		return types.Datum{}, fmt.Errorf("a %T is no %s: use []KeyValue", v, t)
	}
	var out types.Datum
	for _, kv := range kvs {
		k, err := datumOf(kv.Key, *t.Key)
		if err != nil {
			return types.Datum{}, fmt.Errorf("key: %w", err)
		}
		x, err := datumOf(kv.Value, *t.Elem)
		if err != nil {
			return types.Datum{}, fmt.Errorf("value of key %v: %w", kv.Key, err)
		}
		out.List = append(out.List, k, x)
	}
	return out, nil
}
