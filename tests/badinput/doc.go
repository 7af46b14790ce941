// Package badinput feeds the program records that cannot be read and shows that each is told with table, place, column and
// value, or left out or put aside where the table says so, counted; and that a job goes on from there without loss.
package badinput
