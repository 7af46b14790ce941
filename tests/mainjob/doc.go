// Package mainjob shows the product's promise on real parts: a SQL file moves data from Kafka to Kafka and PostgreSQL,
// exactly once, while its process is killed.
package mainjob
