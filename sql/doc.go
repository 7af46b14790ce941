// Package sql is the front end: it turns the text of a Flink SQL script into statements of its own syntax tree.
//
//	text -> lexer -> recursive descent for statements, types and query structure
//	                   `-> per expression: skeleton text -> TiDB parser -> operator tree -> own nodes
//
// Invariant: text of the user never reaches TiDB's lexer. An expression is handed over as a skeleton over a closed
// alphabet: operators, parentheses, CASE, and opaque names `#N` that stand for entry N of a side table. TiDB decides
// what binds to what; names, literals, types and positions are ours. Whatever the skeleton's tree holds that we did not
// put there is an internal error and never a silent default.
//
// It imports sql/diag and sql/types; the TiDB parser is imported by tidb.go alone.
package sql
