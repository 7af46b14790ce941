package planner

// maxKeys bounds the alternatives kept when columns are duplicated by a projection.
const maxKeys = 8

// upsertKeys derives the keys of p's output from its inputs' (Flink: FlinkRelMdUpsertKeys). A key is a set of columns,
// ascending; the empty key means a single row; nil means that no key is known.
func upsertKeys(p *phys) [][]int {
	if n, ok := p.op.(keyer); ok {
		return n.upsertKeys(p)
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
