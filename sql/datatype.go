package sql

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/streamsql/streamsql/sql/diag"
	"github.com/streamsql/streamsql/sql/types"
)

// simpleTypes take no parameters.
var simpleTypes = map[string]types.Kind{"BOOLEAN": types.Boolean, "TINYINT": types.TinyInt, "SMALLINT": types.SmallInt,
	"INT": types.Int, "INTEGER": types.Int, "BIGINT": types.BigInt, "FLOAT": types.Float, "REAL": types.Float,
	"DOUBLE": types.Double, "DATE": types.Date, "STRING": types.Varchar, "BYTES": types.Varbinary}

// typeWords are the words a type can start with, for "did you mean".
var typeWords = strings.Fields(`ARRAY BIGINT BINARY BOOLEAN BYTES CHAR DATE DECIMAL DOUBLE FLOAT INT INTEGER INTERVAL MAP
	MULTISET NUMERIC REAL ROW SMALLINT STRING TIME TIMESTAMP TIMESTAMP_LTZ TINYINT VARBINARY VARCHAR`)

// foreignTypes are types of other systems with the Flink type to write.
var foreignTypes = map[string]string{"TEXT": "STRING", "CLOB": "STRING", "BLOB": "BYTES", "BYTEA": "BYTES", "JSON": "STRING",
	"UUID": "STRING", "DATETIME": "TIMESTAMP(3)", "TIMESTAMPTZ": "TIMESTAMP_LTZ(3)", "BOOL": "BOOLEAN", "LONG": "BIGINT",
	"INT64": "BIGINT", "INT32": "INT", "FLOAT64": "DOUBLE", "SHORT": "SMALLINT", "BYTE": "TINYINT", "NUMBER": "DECIMAL(38, 18)",
	"SERIAL": "BIGINT", "JSONB": "STRING", "STRUCT": "ROW<name TYPE, ..>", "LIST": "ARRAY<TYPE>"}

// columnType parses a data type with [NOT] NULL behind it. set reports that NULL was written out.
func (p *parser) columnType() (t types.Type, set bool) {
	t = p.dataType()
	return p.nullability(t)
}

func (p *parser) nullability(t types.Type) (types.Type, bool) {
	switch {
	case p.accept("NOT", "NULL"):
		return t.NotNull(), false
	case p.accept("NULL"):
		return t, true
	}
	return t, false
}

// dataType parses a data type; the result is nullable unless a postfix collection follows NOT NULL of its element.
func (p *parser) dataType() types.Type {
	defer p.enter()()
	t := p.typeName()
	for {
		// INT NOT NULL ARRAY: the nullability belongs to the element when a collection word follows.
		n := 0
		if p.cur().is("NOT") && p.peek(1).is("NULL") {
			n = 2
		} else if p.cur().is("NULL") {
			n = 1
		}
		w := p.peek(n)
		if !w.is("ARRAY") && !w.is("MULTISET") {
			return t
		}
		p.enter()
		if n == 2 {
			t = t.NotNull()
		}
		p.i += n + 1
		if w.is("ARRAY") {
			t = types.ArrayOf(t)
		} else {
			t = types.MultisetOf(t)
		}
	}
}

func (p *parser) typeName() types.Type {
	t := p.cur()
	if t.kind != tokIdent {
		p.failTok("a data type")
	}
	if k, ok := simpleTypes[t.up]; ok {
		p.i++
		if t.up == "DOUBLE" {
			p.accept("PRECISION")
		}
		if p.cur().op("(") {
			p.failHint(p.pos(), "remove the parentheses", "%s takes no length or precision", t.up)
		}
		return types.Of(k)
	}
	p.i++
	switch t.up {
	case "CHAR", "CHARACTER", "BINARY":
		return p.lengthType(t, map[string]types.Kind{"CHAR": types.Char, "CHARACTER": types.Char, "BINARY": types.Binary}[t.up], 1)
	case "VARCHAR": // without a length it is STRING, whatever Flink's type page says
		return p.lengthType(t, types.Varchar, types.MaxLength)
	case "VARBINARY":
		return p.lengthType(t, types.Varbinary, types.MaxLength)
	case "DECIMAL", "DEC", "NUMERIC":
		return p.decimalType()
	case "TIME", "TIMESTAMP":
		return p.timeType(t)
	case "TIMESTAMP_LTZ":
		return types.TimestampOf(types.TimestampLTZ, p.precision(t, 6, 9))
	case "ARRAY", "MULTISET":
		e := p.angle(1)
		if t.up == "ARRAY" {
			return types.ArrayOf(e[0])
		}
		return types.MultisetOf(e[0])
	case "MAP":
		e := p.angle(2)
		return types.MapOf(e[0], e[1])
	case "ROW":
		return p.rowType(t)
	case "INTERVAL":
		return p.intervalType(p.intervalRange())
	case "VARIANT":
		p.refuse(t.pos, "type VARIANT", "PARSE_JSON(text) makes a VARIANT in a query; a table keeps the text as STRING")
	case "RAW", "STRUCTURED", "TIMESTAMP_TZ", "BITMAP":
		p.refuse(t.pos, "type "+t.up, "use STRING or BYTES, or a ROW type")
	}
	p.i--
	p.unknownType(t)
	return types.Type{}
}

func (p *parser) unknownType(t *token) {
	hint := "write a type such as INT, DECIMAL(10, 2), STRING, TIMESTAMP(3) or ARRAY<INT>"
	if w := foreignTypes[t.up]; w != "" {
		hint = "write " + w
	} else if w := diag.Nearest(t.text, typeWords); w != "" {
		hint = "did you mean " + w + "?"
	}
	p.failHint(t.pos, hint, "unknown data type %s", t.text)
}

// number reads an integer from lo to hi.
func (p *parser) number(what string, lo, hi int) int {
	t := p.cur()
	if t.op("-") && p.peek(1).kind == tokInt {
		p.failHint(t.pos, fmt.Sprintf("write a number from %d to %d", lo, hi), "%s must be from %d to %d, not -%s", what, lo, hi, p.peek(1).text)
	}
	if t.kind != tokInt {
		p.failTok(what + " (a number)")
	}
	n, err := strconv.Atoi(t.text)
	if err != nil || n < lo || n > hi {
		p.failHint(t.pos, fmt.Sprintf("write a number from %d to %d", lo, hi), "%s must be from %d to %d, not %s", what, lo, hi, t.text)
	}
	p.i++
	return n
}

// lengthType reads (n) of a string or binary type; def is the length without it.
func (p *parser) lengthType(t *token, k types.Kind, def int) types.Type {
	if p.cur().is("VARYING") {
		p.failHint(p.pos(), "write VARCHAR(n) or VARBINARY(n)", "%s VARYING does not exist in Flink SQL", t.up)
	}
	n := def
	if p.acceptOp("(") {
		n = p.number("the length of "+t.up, 1, types.MaxLength)
		p.wantOp(")")
	}
	return types.Lengthed(k, n)
}

func (p *parser) decimalType() types.Type {
	prec, scale := 10, 0
	if p.acceptOp("(") {
		prec = p.number("the precision of DECIMAL", 1, 38)
		if p.acceptOp(",") {
			scale = p.number("the scale of DECIMAL("+strconv.Itoa(prec)+", s)", 0, prec)
		}
		p.wantOp(")")
	}
	return types.DecimalOf(prec, scale)
}

func (p *parser) precision(t *token, def, limit int) int {
	if !p.acceptOp("(") {
		return def
	}
	n := p.number("the precision of "+t.up, 0, limit)
	p.wantOp(")")
	return n
}

func (p *parser) timeType(t *token) types.Type {
	typ := types.Of(types.Time)
	if t.up == "TIME" {
		typ.Precision = p.precision(t, 0, 9)
	} else {
		typ = types.TimestampOf(types.Timestamp, p.precision(t, 6, 9))
	}
	zone := p.cur()
	switch {
	case p.accept("WITHOUT"):
		p.want("TIME", "ZONE")
	case p.accept("WITH", "LOCAL"):
		p.want("TIME", "ZONE")
		if t.up == "TIME" {
			p.failHint(zone.pos, "write TIME, or TIMESTAMP(3) WITH LOCAL TIME ZONE", "TIME WITH LOCAL TIME ZONE does not exist in Flink SQL")
		}
		typ.Kind = types.TimestampLTZ
	case p.accept("WITH", "TIME", "ZONE"):
		p.refuse(zone.pos, t.up+" WITH TIME ZONE", "write TIMESTAMP_LTZ("+strconv.Itoa(typ.Precision)+")")
	}
	return typ
}

// angle reads <type, ..> with n types.
func (p *parser) angle(n int) []types.Type {
	var out []types.Type
	p.wantOp("<")
	for len(out) < n {
		if len(out) > 0 {
			p.wantOp(",")
		}
		t, _ := p.columnType()
		out = append(out, t)
	}
	p.wantOp(">")
	return out
}

// rowType reads <name type ['comment'], ..> or the same in parentheses. Fields without names are called f0, f1, ..
func (p *parser) rowType(t *token) types.Type {
	closer := ">"
	if p.acceptOp("(") {
		closer = ")"
	} else if p.acceptOp("<>") {
		p.failHint(t.pos, "write ROW<name type, ...>", "ROW type without fields")
	} else {
		p.wantOp("<")
	}
	r := types.RowOf()
	seen := map[string]bool{}
	p.list(func() {
		f := types.Field{Name: "f" + strconv.Itoa(len(r.Fields))}
		at := p.pos()
		if p.cur().kind == tokQuoted || !isType(p.cur()) || isType(p.peek(1)) && !p.collectionSuffix() {
			f.Name = p.ident("a field name").Text
		}
		f.Type, _ = p.columnType()
		if p.cur().kind == tokString {
			f.Comment = p.str("a comment")
		}
		if seen[f.Name] {
			p.failHint(at, "give each field a name of its own", "field %s occurs twice in a ROW type", f.Name)
		}
		seen[f.Name] = true
		r.Fields = append(r.Fields, f)
	})
	p.wantOp(closer)
	return r
}

// collectionSuffix reports TYPE ARRAY or TYPE MULTISET without <.
func (p *parser) collectionSuffix() bool {
	n := p.peek(1)
	return (n.is("ARRAY") || n.is("MULTISET")) && !p.peek(2).op("<")
}

var typeWordSet = wordSet(strings.Join(typeWords, " "))

func isType(t *token) bool { return typeWordSet[t.up] }
