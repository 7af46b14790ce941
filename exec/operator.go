package exec

import "github.com/streamsql/streamsql/checkpoint"

// Stateless is embedded by operators that do nothing at watermarks and barriers: no event time, and all state, if any,
// in tables.
type Stateless struct{}

// OnWatermark implements Operator.
func (Stateless) OnWatermark(Watermark, Emitter) error { return nil }

// OnBarrier implements Operator.
func (Stateless) OnBarrier(checkpoint.Barrier, Emitter) ([]byte, error) { return nil, nil }

// Close implements Operator.
func (Stateless) Close() error { return nil }
