// Package checkpoint is the protocol that makes source positions, operator state and output commit take effect
// together, and the state that takes part in it.
//
//	timer ── Due ──▶ Coordinator ── Inject(n) ──▶ sources ──barrier n──▶ operators ──▶ sinks
//	                                                │ positions            │ state files   │ committables
//	                                                ▼                      ▼               ▼
//	                      Coordinator ◀── Acked(n, subtask, snapshot) ─────────────────────┘
//	                           │ all subtasks acked
//	                           ▼
//	                     Publish(n): manifest durable        ◀── THE commit point
//	                           │
//	                           ▼
//	                     Commit(n): every Committer, repeated until nil ──▶ Confirmed(n) durable
//
// Invariants: nothing external is committed before the manifest that lists it is durable; every committable that is not
// confirmed is carried into every later manifest; checkpoint ids are never reused within a lineage, not even those of
// discarded checkpoints; a state directory has one owner, whose fencing number every durable write carries.
//
// Restore order is the safety argument (docs/exactly-once.md): fence the store, read the newest usable manifest, commit
// what it lists, make that durable, only then abort leftovers, then open writers, then read.
//
// It imports sql/types, sql/batch and sql/diag, and Pebble.
package checkpoint
