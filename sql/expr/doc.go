// Package expr is the scalar expression layer: bound, typed expression trees and the kernels that evaluate them over
// batches. The planner's binder builds trees through the constructors here (NewBinary, NewCall, NewCast, …), which do
// all type inference by Flink's rules; Compile turns trees into a Program that evaluates whole columns.
//
// It imports sql/batch, sql/types and sql/diag. An expression is immutable and may be shared; a Program belongs to one
// goroutine.
package expr
