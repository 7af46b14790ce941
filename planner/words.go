package planner

import "strconv"

// plural is a count of things: 1 column, 2 columns.
func plural(n int, thing string) string {
	if n != 1 {
		thing += "s"
	}
	return strconv.Itoa(n) + " " + thing
}
