package format

import (
	"math"

	"github.com/streamsql/streamsql/connectors"
	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/diag"
	"github.com/streamsql/streamsql/sql/types"
)

// conv says how to read values of one SQL type.
type conv struct {
	ty        types.Type
	kind      types.Kind
	phys      types.Phys
	lo, hi    int64 // range of integer kinds
	elem, key *conv
	obj       *object // ROW
}

// object says how to read a JSON object: its keys in the order they are expected. A key that is found where it is
// expected costs one comparison; others are looked up by name.
type object struct {
	slots  []*slot
	byName map[string]*slot
	fields []field
	// misses counts keys that were not where expected; after relearnAfter the order of the next object is adopted.
	misses   int
	relearns int
	learned  []*slot
}

const (
	relearnAfter = 32
	maxRelearns  = 16
	maxSlots     = 512
	lookAhead    = 3 // slots tried behind the expected one before a lookup by name
)

// field is a wanted member of an object.
type field struct {
	name string
	c    *conv
	col  *batch.ColBuilder // of a rowPlan only, set per Decode
	sub  *rowPlan          // instead of col: members of the member are wanted
}

// slot is a key seen or expected in an object. f indexes object.fields, -1 for members nobody needs.
type slot struct {
	key string // `"name":`
	pos int
	f   int
}

func newConv(t types.Type) *conv {
	c := &conv{ty: t, kind: t.Kind, phys: t.Phys()}
	switch t.Kind {
	case types.TinyInt:
		c.lo, c.hi = math.MinInt8, math.MaxInt8
	case types.SmallInt:
		c.lo, c.hi = math.MinInt16, math.MaxInt16
	case types.Int, types.IntervalYearMonth:
		c.lo, c.hi = math.MinInt32, math.MaxInt32
	case types.BigInt, types.IntervalDayTime:
		c.lo, c.hi = math.MinInt64, math.MaxInt64
	case types.Array:
		c.elem = newConv(*t.Elem)
	case types.Map:
		c.key, c.elem = newConv(*t.Key), newConv(*t.Elem)
	case types.Multiset:
		c.key, c.elem = newConv(*t.Elem), newConv(types.IntType)
	case types.Row:
		names := make([]string, len(t.Fields))
		fs := make([]field, len(t.Fields))
		wanted := make([]int, len(t.Fields))
		for i, f := range t.Fields {
			names[i] = f.Name
			fs[i] = field{name: f.Name, c: newConv(f.Type)}
			wanted[i] = i
		}
		c.obj = newObject(names, wanted, fs)
	}
	return c
}

// newObject makes the plan of an object whose members are expected as names; wanted[i] is the field name i goes to, -1
// for none.
func newObject(names []string, wanted []int, fields []field) *object {
	o := &object{byName: make(map[string]*slot, len(names)), fields: fields}
	for i, n := range names {
		o.add(n, wanted[i])
	}
	return o
}

func (o *object) add(name string, f int) *slot {
	s := &slot{key: string(appendJSONString(nil, name)) + ":", pos: len(o.slots), f: f}
	o.slots = append(o.slots, s)
	o.byName[name] = s
	return s
}

// adopt makes the learned order the expected one; keys not seen keep their place behind.
func (o *object) adopt() {
	seen := make(map[*slot]bool, len(o.learned))
	order := make([]*slot, 0, len(o.slots))
	for _, s := range o.learned {
		if !seen[s] {
			seen[s] = true
			order = append(order, s)
		}
	}
	for _, s := range o.slots {
		if !seen[s] {
			order = append(order, s)
		}
	}
	for i, s := range order {
		s.pos = i
	}
	o.slots, o.learned = order, nil
}

// jsonOptions are the options of json that the envelopes share.
type jsonOptions struct {
	failOnMissing bool
	ignoreErrors  bool
	iso           bool
	mapNullKey    string // FAIL, DROP, LITERAL
	nullKey       string
	plainDecimal  bool
	omitNulls     bool
}

var jsonShared = []connectors.Option{
	{Key: "ignore-parse-errors", Type: connectors.BoolOption, Default: "false", Flink: true,
		Doc: "turn a field that cannot be read into NULL and drop a message that cannot be parsed, counting both"},
	{Key: "timestamp-format.standard", Default: "SQL", Flink: true,
		Doc: "text of timestamps: 'SQL' (2024-01-02 03:04:05.123) or 'ISO-8601' (2024-01-02T03:04:05.123)"},
	{Key: "map-null-key.mode", Type: connectors.EnumOption, Default: "FAIL", Values: []string{"FAIL", "DROP", "LITERAL"}, Flink: true,
		Doc: "what to write for a NULL key of a map: fail, drop the entry, or write map-null-key.literal"},
	{Key: "map-null-key.literal", Default: "null", Flink: true, Doc: "key written for a NULL map key with map-null-key.mode = 'LITERAL'"},
	{Key: "encode.decimal-as-plain-number", Type: connectors.BoolOption, Default: "false", Flink: true,
		Doc: "write DECIMAL with all fraction digits and without exponent"},
	{Key: "encode.ignore-null-fields", Type: connectors.BoolOption, Default: "false", Flink: true, Doc: "leave NULL fields out of written objects"},
}

func readJSONOptions(v *connectors.Values, plainJSON bool) jsonOptions {
	o := jsonOptions{
		ignoreErrors: v.Bool("ignore-parse-errors"),
		iso:          v.String("timestamp-format.standard") == "ISO-8601",
		mapNullKey:   v.Enum("map-null-key.mode"),
		nullKey:      v.String("map-null-key.literal"),
		plainDecimal: v.Bool("encode.decimal-as-plain-number"),
		omitNulls:    v.Bool("encode.ignore-null-fields"),
	}
	if plainJSON {
		o.failOnMissing = v.Bool("fail-on-missing-field")
	}
	return o
}

// checkJSON refuses what json and its envelopes cannot do.
func checkJSON(s *types.Schema, v *connectors.Values, _ connectors.Use) error {
	if std := v.String("timestamp-format.standard"); std != "SQL" && std != "ISO-8601" {
		return v.Errorf("timestamp-format.standard", "unsupported value '%s'", std).WithHint("use 'SQL' or 'ISO-8601', exactly so")
	}
	for _, c := range s.Columns {
		if err := checkJSONType(c.Type); err != nil {
			err.Message = "table " + v.Table().Name + ": column " + c.Name + ": " + err.Message
			return err
		}
	}
	return nil
}

func checkJSONType(t types.Type) *diag.Error {
	key := t.Key
	switch t.Kind {
	case types.Null:
		return diag.New(diag.Semantic, diag.Pos{}, "json cannot hold a column of type NULL")
	case types.Multiset:
		key = t.Elem
	case types.Row:
		for _, f := range t.Fields {
			if err := checkJSONType(f.Type); err != nil {
				return err
			}
		}
		return nil
	}
	if key != nil && !key.IsString() {
		return diag.New(diag.Semantic, diag.Pos{}, "json objects have string keys, so type %s cannot be stored", t).
			WithHint("use a MAP or MULTISET with STRING keys, or an ARRAY<ROW<k, v>>")
	}
	if t.Elem != nil {
		return checkJSONType(*t.Elem)
	}
	return nil
}
