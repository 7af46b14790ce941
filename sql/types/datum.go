package types

// Datum is one value outside a column: a literal, a nested element, a value of the embedding API. The type it belongs
// to is known from its place; the field used follows Type.Phys, nested types use List:
//
//	ARRAY     List = elements
//	ROW       List = fields
//	MAP       List = key, value, key, value, …
//	MULTISET  List = element, count (I64), element, count, …
type Datum struct {
	IsNull bool
	I64    int64
	Hi     int64 // high word of PhysI128; I64 holds the low word's bits
	F64    float64
	Bool   bool
	Str    string
	List   []Datum
}

// NullDatum is SQL NULL.
var NullDatum = Datum{IsNull: true}

// IntDatum is a PhysI64 value.
func IntDatum(v int64) Datum { return Datum{I64: v} }

// FloatDatum is a PhysF64 value.
func FloatDatum(v float64) Datum { return Datum{F64: v} }

// BoolDatum is a PhysBool value.
func BoolDatum(v bool) Datum { return Datum{Bool: v} }

// StrDatum is a PhysStr value of a string or bytes type.
func StrDatum(v string) Datum { return Datum{Str: v} }

// I128Datum is a PhysI128 value.
func I128Datum(v Int128) Datum { return Datum{I64: int64(v.Lo), Hi: v.Hi} }

// ListDatum is a value of a nested type.
func ListDatum(v ...Datum) Datum { return Datum{List: v} }

// I128 is the value of a PhysI128 datum.
func (d Datum) I128() Int128 { return Int128{Hi: d.Hi, Lo: uint64(d.I64)} }

// Decimal is the unscaled value of a datum of DECIMAL type t, wherever it is stored.
func (d Datum) Decimal(t Type) Int128 {
	if t.Phys() == PhysI128 {
		return d.I128()
	}
	return I128(d.I64)
}
