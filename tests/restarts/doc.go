// Package restarts restarts jobs in one process, many times, with real servers, and looks for what is left behind: it imports
// the engine and the harness. Invariant: after any number of restarts a process holds what it held after the first few.
package restarts
