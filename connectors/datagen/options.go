package datagen

import (
	"context"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/streamsql/streamsql/catalog"
	"github.com/streamsql/streamsql/connectors"
	"github.com/streamsql/streamsql/sql/diag"
	"github.com/streamsql/streamsql/sql/types"
)

var options = []connectors.Option{
	{Key: "rows-per-second", Type: connectors.IntOption, Default: "10000", Flink: true, Doc: "rate of the whole table"},
	{Key: "number-of-rows", Type: connectors.IntOption, Flink: true, Doc: "end after so many rows; without it, only a sequence ends the table"},
	{Key: "scan.parallelism", Type: connectors.IntOption, Flink: true, Doc: "number of splits, by default the source's parallelism"},
	{Key: "seed", Type: connectors.IntOption, Doc: "start of the random numbers, so that every run makes the same rows; drawn when absent"},
}

// Connector is 'datagen'.
func Connector() connectors.Connector {
	return connectors.Connector{
		Name:           "datagen",
		Doc:            "makes up rows: random values or sequences, at a rate",
		Options:        options,
		OptionPrefixes: []string{"fields."},
		Replay: func(*catalog.Table) (connectors.Replay, error) {
			return connectors.Replay{Position: "the number of the row of every split; a row is made of the seed and its number, so it is the same when it is made again"}, nil
		},
		Check: func(t *catalog.Table, _ connectors.Use) error {
			_, err := parse(t)
			return err
		},
		Bounded: func(t *catalog.Table) (bool, error) {
			p, err := parse(t)
			if err != nil {
				return false, err
			}
			return p.limit() < math.MaxInt64, nil
		},
		NewSource: func(_ context.Context, spec connectors.SourceSpec) (connectors.Source, error) {
			return newSource(spec)
		},
	}
}

// plan is a table's options, resolved.
type plan struct {
	v      *connectors.Values
	rate   int64
	rows   int64 // -1 = unlimited
	fields []*field
}

// field generates the values of a column, or of a part of a nested one.
type field struct {
	ty       types.Type
	id       uint64 // its random numbers differ from those of other fields
	sequence bool
	lo, hi   int64   // integers and sequences
	flo, fhi float64 // FLOAT, DOUBLE and DECIMAL
	length   int     // of strings and collections
	varLen   bool
	nullRate float64
	maxPast  time.Duration
	parts    []*field // ROW fields, ARRAY element, MAP key and value
}

// limit is the number of rows of the table, MaxInt64 when it does not end.
func (p *plan) limit() int64 {
	n := int64(math.MaxInt64)
	if p.rows >= 0 {
		n = p.rows
	}
	for _, f := range p.fields {
		if f != nil && f.sequence {
			n = min(n, f.hi-f.lo+1)
		}
	}
	return n
}

func parse(t *catalog.Table) (*plan, error) {
	opts := append([]connectors.Option{}, options...)
	for _, c := range t.Columns {
		if c.Kind == catalog.Physical {
			opts = declare(opts, t, "fields."+c.Name+".", c.Type)
		}
	}
	v, err := connectors.Parse(t, opts, nil)
	if err != nil {
		return nil, err
	}
	p := &plan{v: v, rate: v.Int("rows-per-second"), rows: -1}
	if p.rate < 1 {
		return nil, v.Errorf("rows-per-second", "%d is not positive", p.rate)
	}
	if v.Has("number-of-rows") {
		if p.rows = v.Int("number-of-rows"); p.rows < 0 {
			return nil, v.Errorf("number-of-rows", "%d is negative", p.rows)
		}
	}
	if v.Has("scan.parallelism") && v.Int("scan.parallelism") < 1 {
		return nil, v.Errorf("scan.parallelism", "%d is not positive", v.Int("scan.parallelism"))
	}
	for _, c := range t.Columns {
		switch c.Kind {
		case catalog.Physical:
			f, err := resolve(v, "fields."+c.Name+".", c.Type)
			if err != nil {
				return nil, err
			}
			p.fields = append(p.fields, f)
		case catalog.Metadata:
			return nil, diag.New(diag.Semantic, v.Pos("seed"), "table %s: connector 'datagen' has no metadata column '%s'", t.Name, c.Key)
		default:
			p.fields = append(p.fields, nil)
		}
	}
	return p, nil
}

func isSequence(t *catalog.Table, prefix string) bool {
	kind, _ := t.Options.Get(prefix + "kind")
	return strings.EqualFold(kind, "sequence")
}

// declare lists the options of a field: those its type and kind have a use for.
func declare(opts []connectors.Option, t *catalog.Table, prefix string, ty types.Type) []connectors.Option {
	add := func(key string, typ connectors.OptionType, def, doc string) {
		opts = append(opts, connectors.Option{Key: prefix + key, Type: typ, Default: def, Doc: doc, Flink: true})
	}
	if ty.Kind == types.Row {
		for _, f := range ty.Fields {
			opts = declare(opts, t, prefix+f.Name+".", f.Type)
		}
		add("null-rate", connectors.FloatOption, "0", "share of NULL")
		return opts
	}
	opts = append(opts, connectors.Option{Key: prefix + "kind", Type: connectors.EnumOption, Default: "random", Values: []string{"random", "sequence"}, Flink: true,
		Doc: "random values, or a sequence"})
	add("null-rate", connectors.FloatOption, "0", "share of NULL")
	if isSequence(t, prefix) {
		add("start", connectors.IntOption, "", "first number of the sequence")
		add("end", connectors.IntOption, "", "last number of the sequence")
		return opts
	}
	switch {
	case ty.IsInteger() || ty.IsInterval():
		add("min", connectors.IntOption, "", "smallest value")
		add("max", connectors.IntOption, "", "largest value")
	case ty.IsNumeric():
		add("min", connectors.FloatOption, "", "smallest value")
		add("max", connectors.FloatOption, "", "largest value")
	case ty.IsString() || ty.IsBytes():
		add("length", connectors.IntOption, "", "number of characters or bytes")
		add("var-len", connectors.BoolOption, "false", "vary the length from 1 to 'length'")
	case ty.IsTimestamp():
		add("max-past", connectors.DurationOption, "0", "values lie up to this long before now")
	case ty.IsNested():
		add("length", connectors.IntOption, "3", "number of entries")
		if ty.Kind == types.Map {
			opts = declare(opts, t, prefix+"key.", *ty.Key)
			return declare(opts, t, prefix+"value.", *ty.Elem)
		}
		return declare(opts, t, prefix+"element.", *ty.Elem)
	}
	return opts
}

func resolve(v *connectors.Values, prefix string, ty types.Type) (*field, error) {
	f := &field{ty: ty, id: hashText(prefix), nullRate: v.Float(prefix + "null-rate")}
	if f.nullRate < 0 || f.nullRate > 1 {
		return nil, v.Errorf(prefix+"null-rate", "%v is not between 0 and 1", f.nullRate)
	}
	if f.nullRate > 0 && !ty.Nullable {
		return nil, v.Errorf(prefix+"null-rate", "the type is %s", ty).WithHint("remove NOT NULL or the option")
	}
	var err error
	switch {
	case ty.Kind == types.Row:
		for _, sub := range ty.Fields {
			if err = f.part(v, prefix+sub.Name+".", sub.Type); err != nil {
				return nil, err
			}
		}
	case v.Enum(prefix+"kind") == "sequence":
		err = f.resolveSequence(v, prefix)
	case ty.IsNumeric() || ty.IsInterval():
		err = f.resolveRange(v, prefix)
	case ty.IsString() || ty.IsBytes():
		err = f.resolveLength(v, prefix)
	case ty.IsTimestamp():
		f.maxPast = v.Duration(prefix + "max-past")
	case ty.IsNested():
		if f.length = int(v.Int(prefix + "length")); f.length < 0 {
			return nil, v.Errorf(prefix+"length", "%d is negative", f.length)
		}
		if ty.Kind == types.Map {
			if err = f.part(v, prefix+"key.", *ty.Key); err == nil {
				err = f.part(v, prefix+"value.", *ty.Elem)
			}
		} else {
			err = f.part(v, prefix+"element.", *ty.Elem)
		}
	}
	return f, err
}

func (f *field) part(v *connectors.Values, prefix string, ty types.Type) error {
	p, err := resolve(v, prefix, ty)
	if err != nil {
		return err
	}
	if p.sequence {
		return v.Errorf(prefix+"kind", "a sequence cannot be part of a nested value").WithHint("use 'random'")
	}
	f.parts = append(f.parts, p)
	return nil
}

func (f *field) resolveSequence(v *connectors.Values, prefix string) error {
	switch {
	case f.ty.Kind == types.Boolean:
		return nil // random all the same, as in Flink
	case !f.ty.IsNumeric() && !f.ty.IsString():
		return v.Errorf(prefix+"kind", "type %s has no sequence", f.ty).WithHint("use 'random', or a numeric or string column")
	}
	for _, key := range []string{"start", "end"} {
		if !v.Has(prefix + key) {
			return v.Errorf(prefix+"kind", "a sequence needs '%s'", prefix+key).WithHint("add '%s' = '...' to the WITH clause", prefix+key)
		}
	}
	f.sequence, f.lo, f.hi = true, v.Int(prefix+"start"), v.Int(prefix+"end")
	if f.hi < f.lo {
		return v.Errorf(prefix+"end", "%d is before the start, %d", f.hi, f.lo)
	}
	if n := f.hi - f.lo; n < 0 || n == math.MaxInt64 { // one more does not count either
		return v.Errorf(prefix+"end", "the sequence %d to %d has more numbers than can be counted", f.lo, f.hi).WithHint("use an end of at most %d", f.lo+math.MaxInt64-1)
	}
	if lo, hi := intRange(f.ty); f.ty.IsInteger() && (f.lo < lo || f.hi > hi) {
		return v.Errorf(prefix+"end", "the sequence %d to %d leaves the range of %s", f.lo, f.hi, f.ty.Kind)
	}
	return nil
}

func intRange(t types.Type) (lo, hi int64) {
	switch t.Kind {
	case types.TinyInt:
		return math.MinInt8, math.MaxInt8
	case types.SmallInt:
		return math.MinInt16, math.MaxInt16
	case types.Int:
		return math.MinInt32, math.MaxInt32
	case types.IntervalYearMonth:
		return 0, 120000
	case types.IntervalDayTime:
		return 0, 1000000 * 86400 * 1000
	}
	return math.MinInt64, math.MaxInt64
}

func (f *field) resolveRange(v *connectors.Values, prefix string) error {
	if f.ty.IsInteger() || f.ty.IsInterval() {
		lo, hi := intRange(f.ty)
		f.lo, f.hi = lo, hi
		if v.Has(prefix + "min") {
			f.lo = v.Int(prefix + "min")
		}
		if v.Has(prefix + "max") {
			f.hi = v.Int(prefix + "max")
		}
		if f.ty.IsInteger() && (f.lo < lo || f.hi > hi) {
			return v.Errorf(prefix+"min", "%d to %d leaves the range of %s", f.lo, f.hi, f.ty.Kind)
		}
		if f.lo > f.hi {
			return v.Errorf(prefix+"min", "%d is more than '%smax', %d", f.lo, prefix, f.hi)
		}
		return nil
	}
	f.fhi = math.MaxFloat64
	switch f.ty.Kind {
	case types.Float:
		f.fhi = math.MaxFloat32
	case types.Decimal:
		f.fhi = math.Pow10(f.ty.Precision-f.ty.Scale) - math.Pow10(-f.ty.Scale)
	}
	f.flo = -f.fhi
	bound := f.fhi
	if v.Has(prefix + "min") {
		f.flo = v.Float(prefix + "min")
	}
	if v.Has(prefix + "max") {
		f.fhi = v.Float(prefix + "max")
	}
	if !(f.flo >= -bound && f.fhi <= bound) {
		return v.Errorf(prefix+"min", "%v to %v leaves the range of %s", f.flo, f.fhi, f.ty)
	}
	if f.flo > f.fhi {
		return v.Errorf(prefix+"min", "%v is more than '%smax', %v", f.flo, prefix, f.fhi)
	}
	return nil
}

const defaultLength = 100

func (f *field) resolveLength(v *connectors.Values, prefix string) error {
	fixed := f.ty.Kind == types.Char || f.ty.Kind == types.Binary
	f.length = min(f.ty.Precision, defaultLength)
	if fixed || f.ty.Precision < types.MaxLength {
		f.length = f.ty.Precision
	}
	f.varLen = v.Bool(prefix + "var-len")
	if fixed && (v.Has(prefix+"length") || f.varLen) {
		key := "length"
		if f.varLen {
			key = "var-len"
		}
		return v.Errorf(prefix+key, "the length of %s is fixed", f.ty).WithHint("use a VARCHAR or VARBINARY column")
	}
	if v.Has(prefix + "length") {
		n := v.Int(prefix + "length")
		if n < 1 || n > int64(f.ty.Precision) {
			return v.Errorf(prefix+"length", "%s is outside 1 to %d, the length of the column", strconv.FormatInt(n, 10), f.ty.Precision)
		}
		f.length = int(n)
	}
	return nil
}
