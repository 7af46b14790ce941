// Package lint holds the rules of `streamsql check`: what a rule is called, why it is there, and a bad and a good example
// of each. docs/lints.md is written from the list. Whoever knows a fact finds it: connectors about their tables, the
// planner about a job, the checker of the root package about a script.
//
// It imports sql/diag only. Invariant: a code is never used again for another rule; every code that the product can report
// is in Rules, and the example that is bad gives it (a test runs each).
package lint
