// Package datagen is the source that makes up rows: random values or sequences, at a rate.
//
// Row k of split i is a pure function of the seed, i and k, and a position is (seed, number of splits, k). So a restore
// repeats exactly the rows after the checkpoint, whatever the parallelism then; only "now" in temporal columns is read
// when a row is made. The number of splits is the parallelism of the first start.
//
// It imports connectors and the leaves of sql.
package datagen
