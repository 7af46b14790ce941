// Package chaos checks exactly-once on a user's own job: it runs the job over a bounded part of its input into shadows of its
// sinks, first without faults and then with processes that are killed, suspended, rescaled and cut off from their disk, and
// compares what readers see.
//
//	script ─▶ inspect ─▶ sources pinned, sinks shadowed ─▶ golden runs ─▶ schedule of trials, by seed
//	                                                          │                   │
//	                                                          ▼                   ▼
//	                                         rows of the shadows  == ? ==  rows of the shadows, residue ─▶ report
//
// Jobs run in child processes of this program (Child), which the parent injures; the parent only looks at systems from
// outside, with clients of its own. It may import everything below package main.
//
// The invariant: no real sink is written. The rewritten script is planned again before anything runs, and every table it
// writes must be a shadow of this run (fence); names of shadows hold the run's id, and what exists already is refused.
package chaos
