// Package connectors is a table's outside: the interfaces between the engine and external systems, the typed options of
// tables, and the list of what each connector can do. The systems themselves are in the folders below
// (connectors/kafka, connectors/postgres, …), which import this package and never the reverse; the formats (bytes to
// rows and back) are in connectors/format.
//
// It imports sql leaves, catalog and checkpoint.
package connectors
