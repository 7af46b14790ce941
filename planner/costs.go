package planner

import (
	"fmt"
	"slices"

	"github.com/streamsql/streamsql/exec/op"
)

// manyWindows is how many windows a row may be in before the user is told.
const manyWindows = 5000

// costs lists what below the roots takes far more work than it looks, and what to write instead.
func costs(roots ...*phys) []string {
	var out []string
	var walk func(p *phys)
	walk = func(p *phys) {
		for _, in := range p.in {
			walk(in)
		}
		s := ""
		switch n := p.op.(type) {
		case *WindowAggregate:
			s = n.Window.cost()
		case *WindowTVF:
			s = n.Window.cost()
		}
		if s != "" && !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	for _, p := range roots {
		walk(p)
	}
	return out
}

// cost tells of a window function that puts a row in very many windows; "" = it does not.
func (w window) cost() string {
	if w.Kind != op.Hop && w.Kind != op.Cumulate || w.Size/w.Slide <= manyWindows {
		return ""
	}
	name, which := "slide", ""
	instead := fmt.Sprintf("; or OVER (... ORDER BY time RANGE BETWEEN INTERVAL ... PRECEDING AND CURRENT ROW) over %s, which has one result per row", millis(w.Size))
	if w.Kind == op.Cumulate {
		name, which, instead = "step", "up to ", ""
	}
	return fmt.Sprintf("a row is in %s%d windows of %s, each with a result of its own; write a longer %s, such as %s%s",
		which, w.Size/w.Slide, w.kindText(), name, millis(w.longerSlide()), instead)
}

// longerSlide is the shortest round duration that divides the size into few windows.
func (w window) longerSlide() int64 {
	for _, unit := range []int64{1, 1000, 60_000, 3_600_000, 86_400_000} {
		for _, n := range []int64{1, 2, 5, 10, 15, 20, 30} {
			if s := n * unit; s > w.Slide && w.Size%s == 0 && w.Size/s <= manyWindows {
				return s
			}
		}
	}
	return w.Size
}
