// Package examples runs what the README and examples/ show, as a user would, and compares what it prints.
package examples
