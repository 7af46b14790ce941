package equivalence

import (
	"fmt"
	"strings"
)

func init() {
	register("grouping sets", 2, func(g *gen, depth int) query {
		in := g.query(depth - 1)
		s := sets{in: in, keys: min(in.width(), 1+g.r.IntN(3)), calls: randomCalls(g.r, in.width())}
		s.how = []string{"ROLLUP", "CUBE", "GROUPING SETS"}[g.r.IntN(3)]
		all := 1<<s.keys - 1
		switch s.how {
		case "ROLLUP":
			for n := range s.keys + 1 {
				s.masks = append(s.masks, 1<<n-1)
			}
		case "CUBE":
			for m := range all + 1 {
				s.masks = append(s.masks, m)
			}
		default:
			s.masks = append(s.masks, all) // every key has to be in one
			for m := range all {
				if g.r.IntN(2) == 0 {
					s.masks = append(s.masks, m)
				}
			}
		}
		return s
	})
}

// sets is GROUP BY columns 0 to keys-1 in several ways: bit i of a mask says that column i is a key.
type sets struct {
	in    query
	keys  int
	how   string
	masks []int
	calls []call
}

func (s sets) width() int { return s.keys + 1 + len(s.calls) }

func (s sets) sql() string {
	list := func(mask int) string {
		var out []string
		for i := range s.keys {
			if mask>>i&1 == 1 {
				out = append(out, fmt.Sprintf("c%d", i))
			}
		}
		return strings.Join(out, ", ")
	}
	all := list(1<<s.keys - 1)
	by := s.how + " (" + all + ")"
	if s.how == "GROUPING SETS" {
		var parts []string
		for _, m := range s.masks {
			parts = append(parts, "("+list(m)+")")
		}
		by = s.how + " (" + strings.Join(parts, ", ") + ")"
	}
	items := strings.Split(all, ", ")
	items = append(items, fmt.Sprintf("CAST(GROUPING_ID(%s) AS BIGINT) AS c%d", all, s.keys))
	for i, c := range s.calls {
		items = append(items, fmt.Sprintf("%s AS c%d", c.sql(), s.keys+1+i))
	}
	return "SELECT " + strings.Join(items, ", ") + " FROM (" + s.in.sql() + ") GROUP BY " + by
}

func (s sets) eval(t tables) (out []row) {
	in := s.in.eval(t)
	for _, m := range s.masks {
		groups, keys := map[string][]row{}, map[string]row{}
		for _, r := range in {
			k, id := nulls(s.keys+1), int64(0)
			for i := range s.keys {
				id *= 2
				if m>>i&1 == 1 {
					k[i] = r[i]
				} else {
					id++
				}
			}
			k[s.keys] = value{v: id}
			groups[k.String()], keys[k.String()] = append(groups[k.String()], r), k
		}
		for name, rows := range groups {
			o := append(row{}, keys[name]...)
			for _, c := range s.calls {
				o = append(o, c.eval(rows))
			}
			out = append(out, o)
		}
	}
	return out
}
