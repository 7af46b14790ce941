// Package blackhole is the connector that takes rows and drops them: for measuring queries.
//
// It imports connectors and the leaves of sql.
package blackhole
