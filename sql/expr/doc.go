// Package expr is the scalar expression layer: bound, typed expression trees and the kernels that evaluate them over
// batches. The planner's binder builds trees through the constructors here (NewBinary, NewCall, NewCast, …), which do
// all type inference by Flink's rules; Compile turns trees into a Program that evaluates whole columns, CompileFilter
// into a Filter that narrows a selection.
//
//	constructors   bind_*.go, literal.go, registry.go    types, coercions, refusals; CommonType and the cast matrix
//	trees          nodes.go, walk.go, fold.go            immutable, may be shared
//	compile        compile.go, program.go, filter.go     one node per distinct sub-expression
//	kernels        eval_*.go, kernels_*.gen.go           go generate writes the loops of gen/main.go
//	functions      func.go, fn_*.go                      the function table: Func, Bound, Eval
//
// A kernel writes the rows of its selection; rows outside it hold whatever was there before, but always something safe
// to read, so that kernels that cannot fail run over the whole batch when most rows are selected. Errors belong to rows
// and count only where the row's result is used; see program.go.
//
// It imports sql/batch, sql/types and sql/diag. An expression is immutable and may be shared; a Program or Filter belongs
// to one goroutine.
package expr
