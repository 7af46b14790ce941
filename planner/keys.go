package planner

import (
	"slices"

	"github.com/streamsql/streamsql/catalog"
	"github.com/streamsql/streamsql/sql/expr"
	"github.com/streamsql/streamsql/sql/types"
)

// maxKeys bounds the alternatives kept when columns are duplicated by a projection.
const maxKeys = 8

// upsertKeys derives the keys of p's output from its inputs' (Flink: FlinkRelMdUpsertKeys). A key is a set of columns,
// ascending; the empty key means a single row; nil means that no key is known.
func upsertKeys(p *phys) [][]int {
	switch n := p.op.(type) {
	case *Scan:
		return scanKeys(n)
	case *normalize:
		return [][]int{n.Key}
	case *Calc:
		return projectKeys(p.in[0].keys, n.Exprs)
	case *Aggregate:
		return [][]int{upTo(0, len(n.Keys))}
	case *WindowAggregate:
		k, w := len(n.Keys), len(n.Keys)+len(n.Aggs)
		var out [][]int
		for i := range 3 {
			out = append(out, append(upTo(0, k), w+i))
		}
		return out
	case *Sort, *dropBefore, *constraint:
		return p.in[0].keys
	case *materialize:
		return [][]int{n.Key}
	}
	return nil
}

func upTo(from, to int) []int {
	out := make([]int, 0, to-from+1)
	for i := from; i < to; i++ {
		out = append(out, i)
	}
	return out
}

func scanKeys(s *Scan) [][]int {
	pk := s.Info.Table.PrimaryKey
	if len(pk) == 0 {
		return nil
	}
	key := make([]int, len(pk))
	for i, name := range pk {
		key[i] = slices.IndexFunc(s.Cols, func(c int) bool { return s.Info.Fields[c].Name == name })
		if key[i] < 0 {
			return nil
		}
	}
	slices.Sort(key)
	return [][]int{key}
}

// projectKeys maps keys through a projection: each key column must come out as itself or through an injective cast.
func projectKeys(keys [][]int, exprs []expr.Expr) [][]int {
	at := map[int][]int{} // input column → output columns that identify it
	for i, e := range exprs {
		if c, ok := injective(e); ok {
			at[c] = append(at[c], i)
		}
	}
	var out [][]int
	for _, key := range keys {
		variants := [][]int{{}}
		for _, c := range key {
			var next [][]int
			for _, v := range variants {
				for _, o := range at[c] {
					next = append(next, append(slices.Clone(v), o))
				}
			}
			variants = next
		}
		for _, v := range variants {
			slices.Sort(v)
			if len(out) < maxKeys {
				out = append(out, v)
			}
		}
	}
	return out
}

// injective returns the column that e maps one to one: itself, or under casts that lose nothing.
func injective(e expr.Expr) (int, bool) {
	switch e := e.(type) {
	case *expr.Column:
		return e.Index, true
	case *expr.Cast:
		if lossless(e.X.Type(), e.T) {
			return injective(e.X)
		}
	}
	return 0, false
}

// lossless reports casts whose results differ for different values.
func lossless(from, to types.Type) bool {
	switch {
	case from.SameIgnoringNull(to):
		return true
	case from.IsInteger():
		return to.IsInteger() && to.Kind >= from.Kind || to.Kind == types.Varchar && to.Precision >= 20 ||
			to.Kind == types.Double && from.Kind <= types.Int || to.Kind == types.Decimal && to.Precision-to.Scale >= 19
	case from.Kind == types.Boolean, from.Kind == types.Date:
		return to.Kind == types.Varchar && to.Precision >= 10
	case from.IsString():
		return to.Kind == types.Varchar && to.Precision >= from.Precision
	case from.IsBytes():
		return to.Kind == types.Varbinary && to.Precision >= from.Precision
	case from.Kind == types.Timestamp && to.Kind == types.Timestamp:
		return to.Precision >= from.Precision
	}
	return false
}

// smallest is the key with the fewest columns, nil when there is none.
func smallest(keys [][]int) []int {
	var best []int
	for _, k := range keys {
		if best == nil || len(k) < len(best) {
			best = k
		}
	}
	return best
}

// readsMetadata reports a metadata column among cols.
func (t *tableInfo) readsMetadata(cols []int) bool {
	return slices.ContainsFunc(cols, func(c int) bool { return t.Table.Columns[c].Kind == catalog.Metadata })
}
