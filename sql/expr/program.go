package expr

import "github.com/streamsql/streamsql/sql/batch"

// kernel evaluates one expression over a batch.
type kernel func(b *batch.Batch, s *scratch) (*batch.Vec, error)

// scratch is the reusable memory of a Program.
type scratch struct{}
