package planner

import (
	"strings"

	"github.com/streamsql/streamsql/sql/types"
)

// Kinds is a set of modifications a stream may carry (Flink: ModifyKindSet).
type Kinds uint8

// The kinds.
const (
	Inserts Kinds = 1 << iota
	Updates
	Deletes
	AllKinds = Inserts | Updates | Deletes
)

// words lists the kinds the way error messages do: lower case, alphabetical, joined by "and".
func (k Kinds) words() string {
	var w []string
	if k&Deletes != 0 {
		w = append(w, "delete")
	}
	if k&Inserts != 0 {
		w = append(w, "insert")
	}
	if k&Updates != 0 {
		w = append(w, "update")
	}
	return strings.Join(w, " and ")
}

// UpdateKind says how an update looks on an edge.
type UpdateKind uint8

// The update kinds.
const (
	NoUpdate       UpdateKind = iota
	OnlyAfter                 // +U alone
	BeforeAndAfter            // -U, then +U
)

// DeleteKind says what a delete carries.
type DeleteKind uint8

// The delete kinds.
const (
	NoDelete   DeleteKind = iota
	DeleteKey             // only the key columns are valid
	DeleteFull            // the whole row
)

// Trait is what flows over an edge.
type Trait struct {
	Kinds  Kinds
	Update UpdateKind
	Delete DeleteKind
}

// traitOf is the trait of a source's changelog mode. Upsert sources delete by key.
func traitOf(m types.ChangelogMode) Trait {
	switch m {
	case types.Upsert:
		return Trait{AllKinds, OnlyAfter, DeleteKey}
	case types.Retract:
		return Trait{AllKinds, BeforeAndAfter, DeleteFull}
	}
	return Trait{Kinds: Inserts}
}

// Mode is the trait as the runtime's changelog mode: the least mode that covers it.
func (t Trait) Mode() types.ChangelogMode {
	switch {
	case t.Kinds&^Inserts == 0:
		return types.AppendOnly
	case t.Update == OnlyAfter:
		return types.Upsert
	}
	return types.Retract
}

// String is Flink's changelogMode: "[I]", "[I,UA,D]", "[I,UB,UA,D]", with PD for deletes that carry the key only.
func (t Trait) String() string {
	var w []string
	if t.Kinds&Inserts != 0 {
		w = append(w, "I")
	}
	if t.Kinds&Updates != 0 {
		if t.Update == BeforeAndAfter {
			w = append(w, "UB")
		}
		w = append(w, "UA")
	}
	if t.Kinds&Deletes != 0 {
		if t.Delete == DeleteKey {
			w = append(w, "PD")
		} else {
			w = append(w, "D")
		}
	}
	return "[" + strings.Join(w, ",") + "]"
}
