package expr

import (
	"cmp"
	"slices"
	"strings"

	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/diag"
	"github.com/streamsql/streamsql/sql/types"
)

// arrayFn is a row of the array table. f gets the decoded arguments.
func arrayFn(name, usage, doc string, sp spec, f func(b *site, x row) (types.Datum, *diag.Error)) *Func {
	sp.eval = datums(func(b *site) func(row) (types.Datum, *diag.Error) {
		return func(x row) (types.Datum, *diag.Error) { return f(b, x) }
	})
	return &Func{Name: name, Category: "collection", Usage: usage, Doc: doc, Bind: fn(usage, sp)}
}

func arrayFuncs() []*Func {
	return []*Func{
		{Name: "CARDINALITY", Category: "collection", Usage: "CARDINALITY(array or map)", Doc: "The number of elements of an array or entries of a map.",
			Bind: fn("CARDINALITY(array or map)", spec{params: "x", ret: types.IntType, check: isCollection, eval: func(b *site) func(Session) Eval {
				per := 1
				if b.args[0].Type().Kind != types.Array {
					per = 2
				}
				e := perRow(vecI64, func(x row) (int64, *diag.Error) { return int64(types.NestedLen(x.str(0)) / per), nil })
				return func(Session) Eval { return e }
			}})},
		arrayFn("ELEMENT", "ELEMENT(array)", "The only element of an array; NULL for none, an error for more.",
			spec{params: "a", retOf: elemType, nullable: true}, func(b *site, x row) (types.Datum, *diag.Error) {
				switch list := x.datum(0).List; len(list) {
				case 0:
					return types.NullDatum, nil
				case 1:
					return list[0], nil
				default:
					return types.Datum{}, badValue("ELEMENT", "the array has %d elements", len(list)).WithHint("choose one: array[1]")
				}
			}),
		{Name: "ARRAY_CONTAINS", Category: "collection", Usage: "ARRAY_CONTAINS(array, element)", Doc: "Whether the array has the element; NULL can be looked for.",
			Bind: fn("ARRAY_CONTAINS(array, element)", spec{params: "ax", ret: types.BoolType, sees: true, check: elementArg, eval: findEval(vecBool,
				func(at int, _ bool) (bool, *diag.Error) { return at > 0, nil })})},
		{Name: "ARRAY_POSITION", Category: "collection", Usage: "ARRAY_POSITION(array, element)",
			Doc: "The 1-based position of the first equal element, 0 if there is none; NULL for a NULL element.",
			Bind: fn("ARRAY_POSITION(array, element)", spec{params: "ax", ret: types.IntType, sees: true, check: elementArg, eval: findEval(vecI64,
				func(at int, null bool) (int64, *diag.Error) {
					if null {
						return 0, isNull
					}
					return int64(at), nil
				})})},
		arrayFn("ARRAY_APPEND", "ARRAY_APPEND(array, element)", "The array with the element behind it.",
			spec{params: "ax", retOf: elementResult, sees: true}, func(_ *site, x row) (types.Datum, *diag.Error) {
				if x.null(0) {
					return types.NullDatum, nil
				}
				return list(append(slices.Clip(x.datum(0).List), x.datum(1))), nil
			}),
		arrayFn("ARRAY_PREPEND", "ARRAY_PREPEND(array, element)", "The array with the element in front of it.",
			spec{params: "ax", retOf: elementResult, sees: true}, func(_ *site, x row) (types.Datum, *diag.Error) {
				if x.null(0) {
					return types.NullDatum, nil
				}
				return list(append([]types.Datum{x.datum(1)}, x.datum(0).List...)), nil
			}),
		arrayFn("ARRAY_REMOVE", "ARRAY_REMOVE(array, element)", "The array without all elements equal to element, which may be NULL.",
			spec{params: "ax", retOf: removeResult, sees: true}, func(b *site, x row) (types.Datum, *diag.Error) {
				if x.null(0) {
					return types.NullDatum, nil
				}
				t := *b.args[0].Type().Elem
				want := datumKey(x.datum(1), t)
				return list(slices.DeleteFunc(x.datum(0).List, func(d types.Datum) bool { return datumKey(d, t) == want })), nil
			}),
		arrayFn("ARRAY_DISTINCT", "ARRAY_DISTINCT(array)", "The elements without repetitions, in the order of first occurrence.",
			spec{params: "a", retOf: argType(0)}, func(b *site, x row) (types.Datum, *diag.Error) {
				return distinct(*b.ret.Elem, x.datum(0).List), nil
			}),
		arrayFn("ARRAY_UNION", "ARRAY_UNION(array, array)", "The elements of both arrays without repetitions.",
			spec{params: "aa", retOf: arraysResult}, func(b *site, x row) (types.Datum, *diag.Error) {
				return distinct(*b.ret.Elem, append(slices.Clip(x.datum(0).List), x.datum(1).List...)), nil
			}),
		arrayFn("ARRAY_EXCEPT", "ARRAY_EXCEPT(array, array)", "The elements of the first array that the second does not have, without repetitions.",
			spec{params: "aa", retOf: arraysResult}, func(b *site, x row) (types.Datum, *diag.Error) { return filterBy(b, x, false), nil }),
		arrayFn("ARRAY_INTERSECT", "ARRAY_INTERSECT(array, array)", "The elements of the first array that the second has too, without repetitions.",
			spec{params: "aa", retOf: arraysResult}, func(b *site, x row) (types.Datum, *diag.Error) { return filterBy(b, x, true), nil }),
		arrayFn("ARRAY_CONCAT", "ARRAY_CONCAT(array, …)", "The arrays one behind the other.",
			spec{params: "a*", retOf: arraysResult}, func(_ *site, x row) (types.Datum, *diag.Error) {
				var out []types.Datum
				for i := range x.args {
					out = append(out, x.datum(i).List...)
				}
				return list(out), nil
			}),
		arrayFn("ARRAY_REVERSE", "ARRAY_REVERSE(array)", "The elements in reverse order.",
			spec{params: "a", retOf: argType(0)}, func(_ *site, x row) (types.Datum, *diag.Error) {
				d := x.datum(0)
				slices.Reverse(d.List)
				return d, nil
			}),
		arrayFn("ARRAY_SLICE", "ARRAY_SLICE(array, start [, end])",
			"The elements from start to end, both included and counted from 1; negative numbers count from the end.",
			spec{params: "ai|i", retOf: argType(0)}, arraySlice),
		arrayFn("ARRAY_SORT", "ARRAY_SORT(array [, ascending [, nullsFirst]])",
			"The elements in order; NULLs come first when ascending and last otherwise, unless nullsFirst says where.",
			spec{params: "a|cc", retOf: argType(0), check: comparableElem}, arraySort),
		arrayFn("ARRAY_MAX", "ARRAY_MAX(array)", "The greatest element, without NULLs; NULL for an empty array.",
			spec{params: "a", retOf: elemType, nullable: true, check: comparableElem}, func(b *site, x row) (types.Datum, *diag.Error) { return extreme(b, x, 1), nil }),
		arrayFn("ARRAY_MIN", "ARRAY_MIN(array)", "The smallest element, without NULLs; NULL for an empty array.",
			spec{params: "a", retOf: elemType, nullable: true, check: comparableElem}, func(b *site, x row) (types.Datum, *diag.Error) { return extreme(b, x, -1), nil }),
		{Name: "ARRAY_JOIN", Category: "collection", Usage: "ARRAY_JOIN(array, delimiter [, nullText])",
			Doc: "The strings of the array with the delimiter between them. NULLs are left out unless nullText stands for them.",
			Bind: fn("ARRAY_JOIN(array, delimiter [, nullText])", spec{params: "as|s", ret: types.StringType, check: func(b *site) error {
				if !b.args[0].Type().Elem.IsString() {
					return badCall(b.CallSite, "the array is of type %s", b.args[0].Type().WithNull(true)).WithHint("CAST it to ARRAY<STRING>")
				}
				return nil
			}, eval: texts(arrayJoin)})},
	}
}

func list(l []types.Datum) types.Datum { return types.Datum{List: l} }

func isCollection(b *site) error {
	switch b.args[0].Type().Kind {
	case types.Array, types.Map, types.Multiset:
		return nil
	}
	return wrongArgs(b.CallSite, "CARDINALITY(array or map)")
}

func elemType(b *site) (types.Type, error) { return *b.args[0].Type().Elem, nil }

// elementArg gives the array of argument 0 and the element of argument 1 a common element type.
func elementArg(b *site) error {
	t := b.args[0].Type()
	elem, err := CommonType([]types.Type{*t.Elem, b.args[1].Type()})
	if err != nil {
		return badCall(b.CallSite, "an array of %s has no elements of type %s", t.Elem.WithNull(true), b.args[1].Type().WithNull(true)).
			WithHint("CAST the element to %s", t.Elem.WithNull(true))
	}
	b.args[0] = convert(b.args[0], types.ArrayOf(elem.WithNull(t.Elem.Nullable)))
	b.args[1] = convert(b.args[1], elem)
	return nil
}

func removeResult(b *site) (types.Type, error) {
	if err := elementArg(b); err != nil {
		return types.Type{}, err
	}
	return b.args[0].Type(), nil
}

func elementResult(b *site) (types.Type, error) {
	nullable := b.args[1].Type().Nullable || b.args[1].Type().Kind == types.Null
	if err := elementArg(b); err != nil {
		return types.Type{}, err
	}
	t := b.args[0].Type()
	elem := t.Elem.WithNull(t.Elem.Nullable || nullable)
	return types.ArrayOf(elem), nil
}

func arraysResult(b *site) (types.Type, error) { return b.common(0, len(b.args)) }

// datumKey is equal for equal values. NULL equals NULL.
func datumKey(d types.Datum, t types.Type) string {
	if hasMap(t) && !d.IsNull {
		sortMaps(d, t)
	}
	return string(types.AppendValue(nil, d, t))
}

// findEval passes the 1-based position of argument 1 in the array of argument 0 on to f.
func findEval[T any](dst func(*batch.Vec) []T, f func(at int, null bool) (T, *diag.Error)) func(*site) func(Session) Eval {
	return func(b *site) func(Session) Eval {
		t := *b.args[0].Type().Elem
		e := perRow(dst, func(x row) (T, *diag.Error) {
			if x.null(0) {
				var zero T
				return zero, isNull
			}
			null := x.null(1)
			want := datumKey(x.datum(1), t)
			for i, d := range x.datum(0).List {
				if datumKey(d, t) == want {
					return f(i+1, null)
				}
			}
			return f(0, null)
		})
		return func(Session) Eval { return e }
	}
}

func distinct(t types.Type, in []types.Datum) types.Datum {
	seen := make(map[string]bool, len(in))
	out := in[:0:0]
	for _, d := range in {
		if k := datumKey(d, t); !seen[k] {
			seen[k] = true
			out = append(out, d)
		}
	}
	return list(out)
}

// filterBy keeps the elements of array 0 that array 1 has, or has not.
func filterBy(b *site, x row, has bool) types.Datum {
	t := *b.ret.Elem
	other := map[string]bool{}
	for _, d := range x.datum(1).List {
		other[datumKey(d, t)] = true
	}
	d := distinct(t, x.datum(0).List)
	d.List = slices.DeleteFunc(d.List, func(e types.Datum) bool { return other[datumKey(e, t)] != has })
	return d
}

func arraySlice(_ *site, x row) (types.Datum, *diag.Error) {
	l := x.datum(0).List
	n := int64(len(l))
	place := func(i int64) int64 {
		switch {
		case i < 0:
			return n + i + 1
		case i == 0:
			return 1
		}
		return i
	}
	from, to := max(1, place(x.i64(1))), n
	if x.has(2) {
		to = min(n, place(x.i64(2)))
	}
	if from > n || to < from {
		return list(nil), nil
	}
	return list(l[from-1 : to]), nil
}

func comparableElem(b *site) error {
	t := b.args[0].Type().Elem
	if t.IsNested() || t.Kind == types.Null || t.Kind == types.Boolean && b.Name != "" && !strings.EqualFold(b.Name, "ARRAY_SORT") {
		return badCall(b.CallSite, "values of type %s have no order", t.WithNull(true))
	}
	return nil
}

// compareDatums orders two values of type t that are not NULL; NaN is the greatest number.
func compareDatums(a, b types.Datum, t types.Type) int {
	switch t.Phys() {
	case types.PhysF64:
		switch {
		case a.F64 != a.F64 && b.F64 == b.F64:
			return 1
		case a.F64 == a.F64 && b.F64 != b.F64:
			return -1
		case a.F64 != a.F64:
			return 0
		}
		return cmp.Compare(a.F64, b.F64)
	case types.PhysBool:
		return int(b2i(a.Bool)) - int(b2i(b.Bool))
	case types.PhysStr:
		return strings.Compare(a.Str, b.Str)
	case types.PhysI128:
		return a.I128().Cmp(b.I128())
	}
	return cmp.Compare(a.I64, b.I64)
}

func arraySort(b *site, x row) (types.Datum, *diag.Error) {
	asc := !x.has(1) || x.bool(1)
	nullsFirst := asc
	if x.has(2) {
		nullsFirst = x.bool(2)
	}
	d, t := x.datum(0), *b.args[0].Type().Elem
	slices.SortStableFunc(d.List, func(l, r types.Datum) int {
		switch {
		case l.IsNull && r.IsNull:
			return 0
		case l.IsNull || r.IsNull:
			if l.IsNull == nullsFirst {
				return -1
			}
			return 1
		case asc:
			return compareDatums(l, r, t)
		}
		return compareDatums(r, l, t)
	})
	return d, nil
}

func extreme(b *site, x row, sign int) types.Datum {
	best := types.NullDatum
	for _, d := range x.datum(0).List {
		if !d.IsNull && (best.IsNull || sign*compareDatums(d, best, *b.args[0].Type().Elem) > 0) {
			best = d
		}
	}
	return best
}

func arrayJoin(dst []byte, x row) ([]byte, *diag.Error) {
	first := true
	for _, d := range x.datum(0).List {
		text := d.Str
		if d.IsNull {
			if !x.has(2) {
				continue
			}
			text = x.str(2)
		}
		if !first {
			dst = append(dst, x.str(1)...)
		}
		first = false
		dst = append(dst, text...)
	}
	return dst, nil
}
