package expr

import (
	"fmt"
	"strings"

	"github.com/streamsql/streamsql/sql/diag"
	"github.com/streamsql/streamsql/sql/types"
)

// NewItem is x[index]: an element of an ARRAY (from 1, NULL outside) or the value of a key of a MAP (NULL when absent).
func NewItem(x, index Expr) (Expr, error) {
	t := x.Type()
	switch t.Kind {
	case types.Array:
		it := index.Type()
		if !it.IsInteger() && it.Kind != types.Null {
			return nil, diag.New(diag.Semantic, diag.Pos{}, "an array index must be an integer, %s is of type %s", index,
				it.WithNull(true)).WithHint("write a whole number, or CAST(%s AS INT)", index)
		}
		if l, ok := index.(*Literal); ok && !l.Value.IsNull && l.Value.I64 < 1 {
			return nil, diag.New(diag.Semantic, diag.Pos{}, "array index %d is out of range", l.Value.I64).
				WithHint("the first element is [1]")
		}
		return &Item{X: x, Index: convert(index, types.BigIntType), T: t.Elem.WithNull(true)}, nil
	case types.Variant:
		return newVariantItem(x, index)
	case types.Map:
		if index.Type().IsString() && t.Key.IsString() {
			// The declared length says nothing about which keys there are: MAP['a', 1] takes the value of a STRING column.
			return &Item{X: x, Index: index, T: t.Elem.WithNull(true)}, nil
		}
		key, err := ImplicitCast(index, *t.Key)
		if err != nil {
			return nil, err
		}
		return &Item{X: x, Index: key, T: t.Elem.WithNull(true)}, nil
	}
	return nil, diag.New(diag.Semantic, diag.Pos{}, "%s of type %s has no elements", x, t.WithNull(true)).
		WithHint("[…] takes an ARRAY or a MAP; the fields of a ROW are written row.field")
}

// NewField is field name of the ROW x. NULL rows have NULL fields.
func NewField(x Expr, name string) (Expr, error) {
	t := x.Type()
	if t.Kind != types.Row {
		return nil, diag.New(diag.Semantic, diag.Pos{}, "%s of type %s has no field %q", x, t.WithNull(true), name).
			WithHint("only ROW values have fields")
	}
	names := make([]string, len(t.Fields))
	for i, f := range t.Fields {
		if f.Name == name {
			return &FieldRef{X: x, Field: i, T: f.Type.WithNull(f.Type.Nullable || t.Nullable)}, nil
		}
		names[i] = f.Name
	}
	err := diag.New(diag.Semantic, diag.Pos{}, "row %s has no field %q", x, name).WithHint("its fields: %s", strings.Join(names, ", "))
	if near := diag.Nearest(name, names); near != "" {
		err.WithHint("did you mean %q?", near)
	}
	return nil, err
}

// NewArray is ARRAY[elems…] of their common type.
func NewArray(elems []Expr) (Expr, error) {
	if len(elems) == 0 {
		return nil, diag.New(diag.Semantic, diag.Pos{}, "ARRAY needs at least one element").
			WithDetail("the element type of an empty array cannot be derived")
	}
	out, t, err := unify(elems)
	if err != nil {
		return nil, err
	}
	return &Construct{Elems: out, T: types.ArrayOf(t).NotNull()}, nil
}

// NewMap is MAP[k1, v1, k2, v2, …]; of equal keys the last one wins.
func NewMap(kvs []Expr) (Expr, error) {
	if len(kvs) == 0 || len(kvs)%2 != 0 {
		return nil, diag.New(diag.Semantic, diag.Pos{}, "MAP needs pairs of a key and a value, got %d values", len(kvs))
	}
	var ks, vs []Expr
	for i := 0; i < len(kvs); i += 2 {
		ks = append(ks, kvs[i])
		vs = append(vs, kvs[i+1])
	}
	ks, kt, err := unify(ks)
	if err != nil {
		return nil, err
	}
	vs, vt, err := unify(vs)
	if err != nil {
		return nil, err
	}
	c := &Construct{T: types.MapOf(kt, vt).NotNull()}
	for i := range ks {
		c.Elems = append(c.Elems, ks[i], vs[i])
	}
	return c, nil
}

func unify(es []Expr) ([]Expr, types.Type, error) {
	ts := make([]types.Type, len(es))
	for i, e := range es {
		ts[i] = e.Type()
	}
	t, err := CommonType(ts)
	if err != nil {
		return nil, t, err
	}
	out := make([]Expr, len(es))
	for i, e := range es {
		out[i] = convert(e, t)
	}
	return out, t, nil
}

// NewRow is ROW(fields…). names may be nil; the fields are then EXPR$0, EXPR$1, …
func NewRow(names []string, fields []Expr) (Expr, error) {
	fs := make([]types.Field, len(fields))
	for i, e := range fields {
		fs[i] = types.Field{Name: fmt.Sprintf("EXPR$%d", i), Type: e.Type()}
		if names != nil {
			fs[i].Name = names[i]
		}
	}
	return &Construct{Elems: fields, T: types.RowOf(fs...).NotNull()}, nil
}
