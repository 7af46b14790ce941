// Package types holds the vocabulary every layer shares: SQL types, single values (Datum), schemas, row kinds and
// changelog modes, 128-bit integers for DECIMAL, and the binary value encoding that state and nested columns use.
//
// Each SQL type has exactly one physical representation (Type.Phys):
//
//	BOOLEAN                                   PhysBool   one byte per row
//	TINYINT SMALLINT INT BIGINT               PhysI64    sign-extended; arithmetic wraps at the SQL width
//	DATE                                      PhysI64    days since 1970-01-01
//	TIME(p)                                   PhysI64    milliseconds of the day
//	TIMESTAMP(p<=6), TIMESTAMP_LTZ(p<=6)      PhysI64    microseconds since 1970-01-01 00:00:00 (LTZ: UTC instant)
//	TIMESTAMP(p>6), TIMESTAMP_LTZ(p>6)        PhysI128   nanoseconds since 1970-01-01 00:00:00
//	INTERVAL YEAR/MONTH                       PhysI64    months
//	INTERVAL DAY..SECOND                      PhysI64    milliseconds
//	DECIMAL(p<=18,s)                          PhysI64    value * 10^s
//	DECIMAL(p>18,s)                           PhysI128   value * 10^s
//	FLOAT, DOUBLE                             PhysF64    FLOAT holds float32 values widened
//	CHAR VARCHAR STRING BINARY VARBINARY      PhysStr    the bytes; strings are UTF-8
//	VARIANT                                   PhysStr    JSON text: sorted keys, no spaces, numbers in their shortest form
//	ARRAY MAP MULTISET ROW                    PhysStr    the value encoding of value.go (AppendValue)
//
// The rules of values live here too, free of expressions and batches: DECIMAL arithmetic (decimal.go), the calendar and
// time zones (calendar.go), CAST's text in both directions (text.go, parse.go), Java's toString (javatext.go), access to encoded nested
// values (nested.go).
//
// Watermarks and window bounds are milliseconds, as in Flink; only column values use microseconds.
//
// It imports sql/diag only.
package types
