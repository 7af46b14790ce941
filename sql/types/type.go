package types

import (
	"fmt"
	"strings"
)

// Kind is the root of a SQL type.
type Kind uint8

// The kinds of Flink's type system that streamsql stores. Null is the type of an untyped NULL literal.
const (
	Null Kind = iota
	Boolean
	TinyInt
	SmallInt
	Int
	BigInt
	Float
	Double
	Decimal
	Char
	Varchar
	Binary
	Varbinary
	Date
	Time
	Timestamp
	TimestampLTZ
	IntervalYearMonth
	IntervalDayTime
	Variant // made by PARSE_JSON; no table column has it
	Array
	Map
	Multiset
	Row
)

// Phys is the storage class of a column; see the table in the package comment.
type Phys uint8

// The storage classes.
const (
	PhysI64 Phys = iota
	PhysF64
	PhysBool
	PhysStr
	PhysI128
)

// MaxLength is the length of STRING and BYTES, which are VARCHAR and VARBINARY of this length.
const MaxLength = 2147483647

// Type is a SQL type. It is a value: copy it freely, compare with Equal. The zero Type is NULL NOT NULL.
type Type struct {
	Kind     Kind
	Nullable bool
	// Precision is p of DECIMAL, TIME, TIMESTAMP and TIMESTAMP_LTZ, the length of CHAR, VARCHAR, BINARY, VARBINARY,
	// and the day or year precision of intervals.
	Precision int
	// Scale is s of DECIMAL and the fraction precision of day-time intervals.
	Scale int
	// Unit is the unit range of an interval, e.g. "DAY TO SECOND". Empty for other kinds.
	Unit string
	// Elem is the element of ARRAY and MULTISET and the value of MAP; Key the key of MAP.
	Elem, Key *Type
	// Fields are the fields of ROW.
	Fields []Field
}

// Field is a named part of a ROW type.
type Field struct {
	Name    string
	Type    Type
	Comment string
}

// Of is the nullable type of kind k with its default parameters: DECIMAL(10,0), CHAR(1), STRING for Varchar, BYTES for
// Varbinary, TIMESTAMP(6), TIME(0). Not for ARRAY, MAP, MULTISET, ROW.
func Of(k Kind) Type {
	t := Type{Kind: k, Nullable: true}
	switch k {
	case Decimal:
		t.Precision = 10
	case Char, Binary:
		t.Precision = 1
	case Varchar, Varbinary:
		t.Precision = MaxLength
	case Timestamp, TimestampLTZ:
		t.Precision = 6
	case IntervalYearMonth:
		t.Precision, t.Unit = 2, "YEAR TO MONTH"
	case IntervalDayTime:
		t.Precision, t.Scale, t.Unit = 2, 6, "DAY TO SECOND"
	}
	return t
}

// The frequent types, nullable.
var (
	StringType  = Of(Varchar)
	BytesType   = Of(Varbinary)
	BoolType    = Of(Boolean)
	IntType     = Of(Int)
	BigIntType  = Of(BigInt)
	DoubleType  = Of(Double)
	DateType    = Of(Date)
	TimestampMs = TimestampOf(Timestamp, 3)
	VariantType = Of(Variant)
)

// DecimalOf is DECIMAL(p,s), nullable.
func DecimalOf(p, s int) Type { return Type{Kind: Decimal, Nullable: true, Precision: p, Scale: s} }

// TimestampOf is TIMESTAMP(p) or TIMESTAMP_LTZ(p), nullable.
func TimestampOf(k Kind, p int) Type { return Type{Kind: k, Nullable: true, Precision: p} }

// Lengthed is CHAR, VARCHAR, BINARY or VARBINARY of length n, nullable.
func Lengthed(k Kind, n int) Type { return Type{Kind: k, Nullable: true, Precision: n} }

// ArrayOf is ARRAY<elem>, nullable.
func ArrayOf(elem Type) Type { return Type{Kind: Array, Nullable: true, Elem: &elem} }

// MultisetOf is MULTISET<elem>, nullable.
func MultisetOf(elem Type) Type { return Type{Kind: Multiset, Nullable: true, Elem: &elem} }

// MapOf is MAP<key,value>, nullable.
func MapOf(key, value Type) Type {
	return Type{Kind: Map, Nullable: true, Key: &key, Elem: &value}
}

// RowOf is ROW<fields>, nullable.
func RowOf(fields ...Field) Type { return Type{Kind: Row, Nullable: true, Fields: fields} }

// NotNull is t without NULL.
func (t Type) NotNull() Type { t.Nullable = false; return t }

// WithNull is t with the given nullability.
func (t Type) WithNull(nullable bool) Type { t.Nullable = nullable; return t }

// Phys is the storage class of columns of type t.
func (t Type) Phys() Phys {
	switch t.Kind {
	case Boolean:
		return PhysBool
	case Float, Double:
		return PhysF64
	case Char, Varchar, Binary, Varbinary, Variant, Array, Map, Multiset, Row:
		return PhysStr
	case Decimal:
		if t.Precision > 18 {
			return PhysI128
		}
	case Timestamp, TimestampLTZ:
		if t.Precision > 6 {
			return PhysI128
		}
	}
	return PhysI64
}

// IsInteger reports TINYINT to BIGINT.
func (t Type) IsInteger() bool { return t.Kind >= TinyInt && t.Kind <= BigInt }

// IsNumeric reports integers, FLOAT, DOUBLE and DECIMAL.
func (t Type) IsNumeric() bool { return t.Kind >= TinyInt && t.Kind <= Decimal }

// IsString reports CHAR, VARCHAR and STRING.
func (t Type) IsString() bool { return t.Kind == Char || t.Kind == Varchar }

// IsBytes reports BINARY, VARBINARY and BYTES.
func (t Type) IsBytes() bool { return t.Kind == Binary || t.Kind == Varbinary }

// IsTimestamp reports TIMESTAMP and TIMESTAMP_LTZ.
func (t Type) IsTimestamp() bool { return t.Kind == Timestamp || t.Kind == TimestampLTZ }

// IsInterval reports both interval families.
func (t Type) IsInterval() bool { return t.Kind == IntervalYearMonth || t.Kind == IntervalDayTime }

// IsNested reports ARRAY, MAP, MULTISET and ROW: PhysStr columns that hold encoded values.
func (t Type) IsNested() bool { return t.Kind >= Array }

// AsDecimal is (p,s) of a DECIMAL, or of the DECIMAL that holds an integer type.
func (t Type) AsDecimal() (p, s int) {
	switch t.Kind {
	case TinyInt:
		return 3, 0
	case SmallInt:
		return 5, 0
	case Int:
		return 10, 0
	case BigInt:
		return 19, 0
	}
	return t.Precision, t.Scale
}

// Wrap narrows v to the width of an integer kind, as Java's casts do.
func (k Kind) Wrap(v int64) int64 {
	switch k {
	case TinyInt:
		return int64(int8(v))
	case SmallInt:
		return int64(int16(v))
	case Int:
		return int64(int32(v))
	}
	return v
}

// Equal compares everything: kind, parameters, nullability, children and field names.
func (t Type) Equal(o Type) bool {
	return t.Nullable == o.Nullable && t.SameIgnoringNull(o)
}

// SameIgnoringNull is Equal that ignores the outermost nullability.
func (t Type) SameIgnoringNull(o Type) bool {
	if t.Kind != o.Kind || t.Precision != o.Precision || t.Scale != o.Scale || t.Unit != o.Unit ||
		len(t.Fields) != len(o.Fields) || (t.Elem == nil) != (o.Elem == nil) || (t.Key == nil) != (o.Key == nil) {
		return false
	}
	if t.Elem != nil && !t.Elem.Equal(*o.Elem) {
		return false
	}
	if t.Key != nil && !t.Key.Equal(*o.Key) {
		return false
	}
	for i, f := range t.Fields {
		if f.Name != o.Fields[i].Name || !f.Type.Equal(o.Fields[i].Type) {
			return false
		}
	}
	return true
}

// AsResult is t as results and TYPEOF name it: Flink's intervals end as months or as seconds of three digits, whatever
// the units they were written in.
func (t Type) AsResult() Type {
	switch t.Kind {
	case IntervalYearMonth:
		t.Unit = "MONTH"
	case IntervalDayTime:
		t.Unit, t.Scale = "SECOND", 3
	case Array, Multiset, Map:
		e := t.Elem.AsResult()
		t.Elem = &e
		if t.Key != nil {
			k := t.Key.AsResult()
			t.Key = &k
		}
	case Row:
		fields := make([]Field, len(t.Fields))
		for i, f := range t.Fields {
			fields[i] = Field{Name: f.Name, Type: f.Type.AsResult(), Comment: f.Comment}
		}
		t.Fields = fields
	}
	return t
}

var kindNames = [...]string{
	Null: "NULL", Boolean: "BOOLEAN", TinyInt: "TINYINT", SmallInt: "SMALLINT", Int: "INT", BigInt: "BIGINT",
	Float: "FLOAT", Double: "DOUBLE", Decimal: "DECIMAL", Char: "CHAR", Varchar: "VARCHAR", Binary: "BINARY",
	Varbinary: "VARBINARY", Date: "DATE", Time: "TIME", Timestamp: "TIMESTAMP", TimestampLTZ: "TIMESTAMP_LTZ",
	IntervalYearMonth: "INTERVAL", IntervalDayTime: "INTERVAL", Variant: "VARIANT", Array: "ARRAY", Map: "MAP", Multiset: "MULTISET",
	Row: "ROW",
}

// String is the root's name, e.g. "VARCHAR".
func (k Kind) String() string { return kindNames[k] }

// String is Flink's summary text of t as DESCRIBE and TYPEOF print it: "DECIMAL(10, 2) NOT NULL", "STRING",
// "ROW<`a` INT, `b` STRING>", "INTERVAL DAY(2) TO SECOND(6)".
func (t Type) String() string {
	s := t.base()
	if !t.Nullable && t.Kind != Null {
		s += " NOT NULL"
	}
	return s
}

func (t Type) base() string {
	n := kindNames[t.Kind]
	switch t.Kind {
	case Decimal:
		return fmt.Sprintf("DECIMAL(%d, %d)", t.Precision, t.Scale)
	case Char, Binary:
		return fmt.Sprintf("%s(%d)", n, t.Precision)
	case Varchar:
		if t.Precision == MaxLength {
			return "STRING"
		}
		return fmt.Sprintf("%s(%d)", n, t.Precision)
	case Varbinary:
		if t.Precision == MaxLength {
			return "BYTES"
		}
		return fmt.Sprintf("%s(%d)", n, t.Precision)
	case Time, Timestamp, TimestampLTZ:
		return fmt.Sprintf("%s(%d)", n, t.Precision)
	case IntervalYearMonth, IntervalDayTime:
		return t.intervalName()
	case Array, Multiset:
		return fmt.Sprintf("%s<%s>", n, t.Elem)
	case Map:
		return fmt.Sprintf("MAP<%s, %s>", t.Key, t.Elem)
	case Row:
		parts := make([]string, len(t.Fields))
		for i, f := range t.Fields {
			parts[i] = "`" + strings.ReplaceAll(f.Name, "`", "``") + "` " + f.Type.String()
			if f.Comment != "" {
				parts[i] += " '" + strings.ReplaceAll(f.Comment, "'", "''") + "'"
			}
		}
		return "ROW<" + strings.Join(parts, ", ") + ">"
	}
	return n
}

func (t Type) intervalName() string {
	from, to, ranged := strings.Cut(t.Unit, " TO ")
	lead := from // only the leading YEAR and DAY show their digits
	switch from {
	case "YEAR", "DAY":
		lead = fmt.Sprintf("%s(%d)", from, t.Precision)
	case "SECOND":
		lead = fmt.Sprintf("SECOND(%d)", t.Scale)
	}
	if !ranged {
		return "INTERVAL " + lead
	}
	if to == "SECOND" {
		to = fmt.Sprintf("SECOND(%d)", t.Scale)
	}
	return "INTERVAL " + lead + " TO " + to
}
