// Package sql is the front end: it turns the text of a Flink SQL script into statements of its own syntax tree.
//
//	text -> lexer -> recursive descent: statements, DDL, types, hints, query structure
//	                   `-> per expression: skeleton -> TiDB parser -> converter -> expression
//
// lexer.go, parser.go, script.go and stmt.go cut and dispatch; ddl*.go, datatype.go, query.go, from.go, match.go and
// call.go are the grammar around expressions; expr.go and primary.go walk an expression into a skeleton (skeleton.go),
// whose structure TiDB decides (tidb.go); format*.go render trees back to text.
//
// Invariant: text of the user never reaches TiDB's lexer. An expression is handed over as a skeleton over a closed
// alphabet: the operators OR AND NOT = <> < > <= >= <=> + - * / % DIV, IN (..), ALL (SELECT ..), CASE WHEN THEN ELSE END,
// parentheses, commas, and opaque names `#N` that stand for entry N of a side table. TiDB decides what binds to what;
// names, literals, types and positions are ours. The converter accepts only the node types a skeleton can yield and checks
// that every entry and every operator comes back exactly once and in text order; anything else is an internal error and
// never a silent default. A warning of TiDB counts as an error.
//
// Two shapes were possible. Rejected: the whole query as one skeleton, where FROM, joins, hints and clauses become
// markers too; TiDB then reads FULL as an alias, binds commas weaker than joins, flattens set operations and turns
// GROUP BY 1 into an ordinal, and each such difference needs a marker that undoes it. Chosen: our recursive descent for
// the structure of a query, where Flink and MySQL differ everywhere, and TiDB for expressions, where their precedence is
// the same. Each expression with an operator or call is one TiDB parse of about 20 microseconds; single operands, which
// fill long VALUES lists, need none.
//
// Where TiDB's grammar is narrower than Calcite's (a = NOT b, a IS NULL * b, two predicates in a row) the statement is
// refused with a request for parentheses, never read differently. precedence_test.go compares with Calcite's operator
// table. Nesting is limited to maxDepth and the operators of a tree to maxOperators, since a Go stack overflow cannot be
// recovered.
//
// It imports sql/diag and sql/types; the TiDB parser is imported by tidb.go alone.
package sql
