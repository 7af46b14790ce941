// Package reconcile compares sinks with sources by the real binary, against a real broker and a real database. It may
// import anything; nothing imports it.
package reconcile
