// Package chaos lets `streamsql chaos` check real jobs, on a real broker and a real database. It may import anything; nothing
// imports it.
package chaos
