// Package print is the connector that writes rows as text, one line each, for looking at a query's changes:
//
//	+I[1, a, null]
//	name:2> -U[2024-01-02T03:04, 1.0E7]
//
// Values are printed as Java prints them, since that is what Flink's print does and what users compare with.
//
// It imports connectors, connectors/format and the leaves of sql.
package print
