package chaos

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// rows are what a reader sees in a sink: a multiset, or the last row of each key.
type rows struct {
	bag   map[string]int64
	byKey map[string]string
}

func bagOf() rows { return rows{bag: map[string]int64{}} }

func keyed() rows { return rows{byKey: map[string]string{}} }

// len is how many rows there are.
func (r *rows) len() (n int64) {
	for _, c := range r.bag {
		n += c
	}
	return n + int64(len(r.byKey))
}

// Difference is how the rows after faults differ from those without.
type Difference struct {
	Lost       int64 `json:"lost"`       // rows, or keys, that are missing
	Duplicates int64 `json:"duplicates"` // rows that are there too often
	Wrong      int64 `json:"wrong"`      // rows that should not be there; keys with another row
	// Rows are the first of them, in order.
	Rows []DifferentRow `json:"rows,omitempty"`
}

// DifferentRow is a row that one side has more often.
type DifferentRow struct {
	Row      string `json:"row"`
	Expected string `json:"expected"` // how often, or the key's row
	Found    string `json:"found"`
}

func (d *Difference) none() bool { return d.Lost == 0 && d.Duplicates == 0 && d.Wrong == 0 }

// shownRows bounds the rows of a difference that are kept.
const shownRows = 10

func (d *Difference) show(row, expected, found string) {
	if len(d.Rows) < shownRows {
		d.Rows = append(d.Rows, DifferentRow{shorten(row), shorten(expected), shorten(found)})
	}
}

// shorten makes a row fit for a report.
func shorten(s string) string {
	const most = 300
	s = strings.ToValidUTF8(s, "\ufffd")
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "") + "…"
	}
	return s
}

// compare finds what got has more or less than want.
func compare(want, got *rows) (d Difference) {
	if want.byKey != nil {
		return compareKeys(want.byKey, got.byKey)
	}
	all := maps.Clone(want.bag)
	maps.Copy(all, got.bag)
	for _, row := range slices.Sorted(maps.Keys(all)) {
		w, g := want.bag[row], got.bag[row]
		switch {
		case w == g:
			continue
		case g < w:
			d.Lost += w - g
		case w > 0:
			d.Duplicates += g - w
		default:
			d.Wrong += g
		}
		d.show(row, fmt.Sprintf("%d×", w), fmt.Sprintf("%d×", g))
	}
	return d
}

func compareKeys(want, got map[string]string) (d Difference) {
	all := maps.Clone(want)
	maps.Copy(all, got)
	for _, key := range slices.Sorted(maps.Keys(all)) {
		w, inWant := want[key]
		g, inGot := got[key]
		switch {
		case inWant && inGot && w == g:
			continue
		case !inGot:
			d.Lost++
			g = "(no row)"
		case !inWant:
			d.Wrong++
			w = "(no row)"
		default:
			d.Wrong++
		}
		d.show(key, w, g)
	}
	return d
}
