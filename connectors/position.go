package connectors

import "github.com/streamsql/streamsql/checkpoint"

// Positioner is a Reader that resolves its start when it is opened ("latest" becomes an offset). The executor records
// these positions right after Open, and after Add, so that a checkpoint taken before the first row already holds them:
// otherwise a restore would resolve the start again and skip rows.
type Positioner interface {
	Positions() []checkpoint.Position
}
