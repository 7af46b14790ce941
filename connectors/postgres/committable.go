package postgres

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/streamsql/streamsql/checkpoint"
)

// The ways to write exactly once: two protocols of two-phase commit, and by key before the checkpoint, where the final state is what
// holds.
const (
	prepared   = "prepared"
	writeAhead = "write-ahead"
	upsert     = "upsert"
)

// committable is the payload: the version, the length of the JSON header, the header, and with write-ahead the rows in
// COPY text format. Version 1 is of rows to append; version 2 is of changes by key, which a release that knows only the first must not
// take for such rows.
type committable struct {
	Protocol string   `json:"protocol"`
	GID      string   `json:"gid,omitempty"`
	Seq      int      `json:"seq"`
	Rows     int64    `json:"rows"`
	Columns  []string `json:"columns,omitempty"`
	// Txn is the prepared transaction's number in the history of the server, for when its marker row is missing; 0 = not known.
	Txn     int64  `json:"txn,omitempty"`
	History string `json:"history,omitempty"`
	// Key are the columns that changes are applied by, nil = rows are appended. The first Split bytes of the data are Deletes keys
	// to delete, the others rows to upsert; no key is there twice.
	Key     []string `json:"key,omitempty"`
	Deletes int64    `json:"deletes,omitempty"`
	Split   int      `json:"split,omitempty"`
	data    []byte
}

const (
	appendVersion = 1
	keyedVersion  = 2
)

func (c *committable) encode() []byte {
	head, err := json.Marshal(c)
	if err != nil {
		panic(err) // strings and integers only
	}
	version := byte(appendVersion)
	if c.Key != nil {
		version = keyedVersion
	}
	out := binary.AppendUvarint([]byte{version}, uint64(len(head)))
	return append(append(out, head...), c.data...)
}

func decodeCommittable(c checkpoint.Committable) (*committable, error) {
	p := c.Payload
	if len(p) == 0 || p[0] != appendVersion && p[0] != keyedVersion {
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
	if err := out.checkKeyed(p[0] == keyedVersion); err != nil {
		return nil, fmt.Errorf("postgres: committable of sink %q, checkpoint %d: %w", c.Sink, c.Checkpoint, err)
	}
	return out, nil
}

// checkKeyed makes sure that what is applied by key is whole lines on either side of the split, and that nothing else says it is.
func (c *committable) checkKeyed(keyed bool) error {
	switch {
	case !keyed && (c.Key != nil || c.Split != 0 || c.Deletes != 0):
		return errors.New("rows to append have a key")
	case !keyed:
		return nil
	case len(c.Key) == 0 || c.Protocol != writeAhead:
		return errors.New("changes by key have no key")
	case c.Split < 0 || c.Split > len(c.data) || c.Deletes < 0 || c.Deletes > c.Rows:
		return errors.New("changes by key are cut short")
	}
	for _, part := range [][]byte{c.data[:c.Split], c.data[c.Split:]} {
		if len(part) > 0 && part[len(part)-1] != '\n' {
			return errors.New("a change is cut short")
		}
	}
	return nil
}
