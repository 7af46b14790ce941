package expr

import (
	"github.com/streamsql/streamsql/sql/diag"
	"github.com/streamsql/streamsql/sql/types"
)

func mapFuncs() []*Func {
	return []*Func{
		arrayFn("MAP_KEYS", "MAP_KEYS(map)", "The keys as an array, in no particular order.",
			spec{params: "m", retOf: func(b *site) (types.Type, error) { return types.ArrayOf(*b.args[0].Type().Key), nil }},
			func(_ *site, x row) (types.Datum, *diag.Error) { return everySecond(x.datum(0).List, 0), nil }),
		arrayFn("MAP_VALUES", "MAP_VALUES(map)", "The values as an array, in no particular order.",
			spec{params: "m", retOf: func(b *site) (types.Type, error) { return types.ArrayOf(*b.args[0].Type().Elem), nil }},
			func(_ *site, x row) (types.Datum, *diag.Error) { return everySecond(x.datum(0).List, 1), nil }),
		arrayFn("MAP_ENTRIES", "MAP_ENTRIES(map)", "The entries as an array of rows (key, value), in no particular order.",
			spec{params: "m", retOf: func(b *site) (types.Type, error) {
				t := b.args[0].Type()
				return types.ArrayOf(types.RowOf(types.Field{Name: "key", Type: *t.Key}, types.Field{Name: "value", Type: *t.Elem})), nil
			}}, func(_ *site, x row) (types.Datum, *diag.Error) {
				kvs := x.datum(0).List
				out := make([]types.Datum, 0, len(kvs)/2)
				for i := 0; i < len(kvs); i += 2 {
					out = append(out, list(kvs[i:i+2]))
				}
				return list(out), nil
			}),
		arrayFn("MAP_FROM_ARRAYS", "MAP_FROM_ARRAYS(keys, values)", "The map of keys and values of the same places; the last of equal keys counts. Arrays of different lengths are an error of the row.",
			spec{params: "aa", retOf: func(b *site) (types.Type, error) {
				return types.MapOf(*b.args[0].Type().Elem, *b.args[1].Type().Elem), nil
			}}, mapFromArrays),
		arrayFn("MAP_UNION", "MAP_UNION(map, …)", "The entries of all maps; of equal keys the last map's value counts.",
			spec{params: "m*", retOf: arraysResult}, func(b *site, x row) (types.Datum, *diag.Error) {
				m := newMapMaker(*b.ret.Key)
				for i := range x.args {
					kvs := x.datum(i).List
					for j := 0; j < len(kvs); j += 2 {
						m.put(kvs[j], kvs[j+1])
					}
				}
				return list(m.list), nil
			}),
	}
}

func everySecond(kvs []types.Datum, from int) types.Datum {
	out := make([]types.Datum, 0, len(kvs)/2)
	for i := from; i < len(kvs); i += 2 {
		out = append(out, kvs[i])
	}
	return list(out)
}

// mapMaker builds a MAP in the order of first occurrence.
type mapMaker struct {
	key  types.Type
	at   map[string]int
	list []types.Datum
}

func newMapMaker(key types.Type) *mapMaker { return &mapMaker{key: key, at: map[string]int{}} }

func (m *mapMaker) put(k, v types.Datum) {
	id := datumKey(k, m.key)
	if i, ok := m.at[id]; ok {
		m.list[i] = v
		return
	}
	m.list = append(m.list, k, v)
	m.at[id] = len(m.list) - 1
}

func mapFromArrays(b *site, x row) (types.Datum, *diag.Error) {
	keys, values := x.datum(0).List, x.datum(1).List
	if len(keys) != len(values) {
		return types.Datum{}, badValue("MAP_FROM_ARRAYS", "there are %d keys and %d values", len(keys), len(values))
	}
	m := newMapMaker(*b.ret.Key)
	for i, k := range keys {
		m.put(k, values[i])
	}
	return list(m.list), nil
}
