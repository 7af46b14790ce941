// Package files tests the connectors datagen, filesystem and print together, through the engine: rows that are made up,
// written, committed over failures at every step, and read back.
package files
