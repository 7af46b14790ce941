// Package op holds the operators: one step of a subtask each, built by constructors the planner calls. An operator
// keeps keyed state in checkpoint tables only, emits nothing it has not been given a reason for by a batch, a watermark
// or a timer, and treats input batches as borrowed.
//
// It imports exec, checkpoint and the leaves of sql.
package op
