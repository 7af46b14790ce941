package op

import (
	"github.com/streamsql/streamsql/exec"
	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/types"
)

// rowChanges collects encoded rows for the output, which are decoded a batch at a time. They are borrowed until flush.
type rowChanges struct {
	codec *rowCodec
	out   *batch.Builder
	rows  [][]byte
	kinds []types.RowKind
}

// add adds a row.
func (c *rowChanges) add(row []byte, k types.RowKind) {
	c.rows, c.kinds = append(c.rows, row), append(c.kinds, k)
}

// room makes room for n rows that are to be in one batch.
func (c *rowChanges) room(n int, next exec.Emitter) error {
	if len(c.rows)+n <= batch.Size {
		return nil
	}
	return c.flush(next)
}

// flush emits the rows.
func (c *rowChanges) flush(next exec.Emitter) error {
	if len(c.rows) == 0 {
		return nil
	}
	if err := c.codec.decode(c.rows, c.out.Cols); err != nil {
		c.out.Abandon()
		return err
	}
	for _, k := range c.kinds {
		c.out.RowKindDone(k)
	}
	clear(c.rows)
	c.rows, c.kinds = c.rows[:0], c.kinds[:0]
	return flush(c.out, next)
}
