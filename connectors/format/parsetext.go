package format

import (
	"errors"

	"github.com/streamsql/streamsql/sql/types"
)

// ParseText reads a value of a scalar type from its text, by the rules json has for strings. It serves values that stand
// outside of messages, such as the partition of a file in its path.
func ParseText(s string, t types.Type) (types.Datum, error) {
	r := &reader{}
	if t.IsNested() {
		return types.NullDatum, errors.New("a value of type " + t.String() + " has no text form")
	}
	switch r.fromString(s, newConv(t)) {
	case bad:
		return types.NullDatum, errors.New(r.why)
	case null:
		return types.NullDatum, nil
	}
	return r.v, nil
}
