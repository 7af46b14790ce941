package postgres

import (
	"encoding/binary"
	"encoding/json"
	"fmt"

	"github.com/streamsql/streamsql/checkpoint"
)

// The protocols of two-phase commit.
const (
	prepared   = "prepared"
	writeAhead = "write-ahead"
)

// committable is the payload: version 1, the length of the JSON header, the header, and with write-ahead the rows in
// COPY text format.
type committable struct {
	Protocol string   `json:"protocol"`
	GID      string   `json:"gid,omitempty"`
	Seq      int      `json:"seq"`
	Rows     int64    `json:"rows"`
	Columns  []string `json:"columns,omitempty"`
	// Txn is the prepared transaction's number in the history of the server, for when its marker row is missing; 0 = not known.
	Txn     int64  `json:"txn,omitempty"`
	History string `json:"history,omitempty"`
	data    []byte
}

const committableVersion = 1

func (c *committable) encode() []byte {
	head, err := json.Marshal(c)
	if err != nil {
		panic(err) // strings and integers only
	}
	out := binary.AppendUvarint([]byte{committableVersion}, uint64(len(head)))
	return append(append(out, head...), c.data...)
}

func decodeCommittable(c checkpoint.Committable) (*committable, error) {
	p := c.Payload
	if len(p) == 0 || p[0] != committableVersion {
		return nil, fmt.Errorf("postgres: committable of sink %q, checkpoint %d has unknown version", c.Sink, c.Checkpoint)
	}
	n, w := binary.Uvarint(p[1:])
	if w <= 0 || uint64(len(p)-1-w) < n {
		return nil, fmt.Errorf("postgres: committable of sink %q, checkpoint %d is cut short", c.Sink, c.Checkpoint)
	}
	head := p[1+w : 1+w+int(n)]
	out := &committable{data: p[1+w+int(n):]}
	if err := json.Unmarshal(head, out); err != nil {
		return nil, fmt.Errorf("postgres: committable of sink %q, checkpoint %d: %w", c.Sink, c.Checkpoint, err)
	}
	if out.Protocol != prepared && out.Protocol != writeAhead {
		return nil, fmt.Errorf("postgres: committable of sink %q, checkpoint %d has protocol %q", c.Sink, c.Checkpoint, out.Protocol)
	}
	return out, nil
}
