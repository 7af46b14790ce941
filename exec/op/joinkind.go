package op

// JoinKind is the kind of a join. Semi and anti joins give rows of the left side only.
type JoinKind uint8

// The joins.
const (
	InnerJoin JoinKind = iota
	LeftJoin
	RightJoin
	FullJoin
	SemiJoin
	AntiJoin
)

// String is the name Flink's plans use: "InnerJoin", "LeftSemiJoin" and so on.
func (k JoinKind) String() string {
	return [...]string{"InnerJoin", "LeftOuterJoin", "RightOuterJoin", "FullOuterJoin", "LeftSemiJoin", "LeftAntiJoin"}[k]
}

// HalfJoin reports a semi or anti join.
func (k JoinKind) HalfJoin() bool { return k >= SemiJoin }

// PadsLeft reports that a left row without a match is given with NULLs for the right side.
func (k JoinKind) PadsLeft() bool { return k == LeftJoin || k == FullJoin }

// PadsRight reports that a right row without a match is given with NULLs for the left side.
func (k JoinKind) PadsRight() bool { return k == RightJoin || k == FullJoin }
