package planner

import (
	"github.com/streamsql/streamsql/exec"
	"github.com/streamsql/streamsql/sql/expr"
)

// operator is a node that the executor can run: what the physical plan is made of. Everything about one kind of node is
// in its file node_<kind>.go; what most kinds share is a default here, and a kind that differs implements the interface.
type operator interface {
	Node
	// slug names the operator in ids of state: short, stable for ever, such as "aggregate".
	slug() string
	// stateful reports that checkpoints hold state of the operator.
	stateful() bool
	// identity writes what decides which rows the node makes of those of its inputs: for the state of it and of all above it.
	identity(w *identity)
	// lower sets what the executor's node n does; inputs, id, name, parallelism and output are set already.
	lower(l *lowering, n *exec.Node, p *phys)
}

// modifier gives the kinds of changes of the output, from those of all inputs together. Default: the same.
type modifier interface{ modify(p *phys, in Kinds) Kinds }

// settler asks the inputs (settleInput) for what the node needs to give changes as d demands, and reports whether that
// can be had. t is what p will give: it may be changed. Default: the update demand goes to every input as it is, and
// deletes carry the whole row.
type settler interface {
	settle(p *phys, d demand, t *Trait, apply bool) bool
}

// deleter says what deletes carry under demand d. Default: the whole row.
type deleter interface {
	deleteKind(p *phys, d demand, k Kinds) DeleteKind
}

// keyer gives the upsert keys of the output: sets of columns, ascending, that identify a row of the stream; the empty
// set means a single row. Default: none is known.
type keyer interface{ upsertKeys(p *phys) [][]int }

// distributor sets parallelism, exchanges (builder.keyed, builder.keyedInput, builder.exchange) and p.dist; the inputs have theirs. Default:
// those of the first input, without an exchange.
type distributor interface {
	distribute(b *builder, p *phys) error
}

// pruner rebuilds the node with at least the needed columns of its output; m maps old columns to new ones (-1 =
// dropped). Default: every column of every input is needed.
type pruner interface {
	prune(need []bool) (out Node, m []int)
}

// filterPusher puts conjunct c, a deterministic condition over the output, below the node; ok is false when that means
// something else. Default: filters stay above.
type filterPusher interface {
	pushFilter(c expr.Expr) (out Node, ok bool)
}

// updater reports that the rows of a logical node can change. Default: when those of an input can.
type updater interface{ updates() bool }

// namer is the label of the physical node where it differs from that of the logical one.
type namer interface{ physicalLabel() string }

// detailer adds to the label of the physical node what only the physical plan knows: ", name=[value]".
type detailer interface{ detail(p *phys) string }

// outsider names what of the node no delivery guarantee covers; "" = nothing.
type outsider interface{ outside() string }

// ender reports that the node's rows leave when its input has ended, and none before.
type ender interface{ atEnd(p *phys) bool }

// grower says what state of the node grows without bound, given the session's time-to-live in ms; "" = none does.
type grower interface{ grows(ttl int64) string }
