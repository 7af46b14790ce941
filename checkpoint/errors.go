package checkpoint

import (
	"errors"

	"github.com/streamsql/streamsql/sql/diag"
)

// ErrNone is what Store.Latest returns when there is no checkpoint to resume from.
var ErrNone = errors.New("no checkpoint")

// errorf makes an error without a place in the user's text: nothing in this package knows one.
func errorf(c diag.Code, format string, args ...any) *diag.Error {
	return diag.New(c, diag.Pos{}, format, args...)
}
