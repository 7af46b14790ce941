package format

import (
	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/types"
)

// Decoder turns messages into rows. It is used by one goroutine.
type Decoder interface {
	// Decode appends the rows of msgs, in order, to the value columns of out: the builder columns named by the decoder's
	// target list (see Format.NewDecoder). It finishes no row: for each row it appends one value per target column and
	// then calls row(i, kind), where i is the index of the message; row appends the remaining columns (metadata, key)
	// and finishes it. On a bad message it abandons that message's rows and returns its index with a *BadRecord. n is
	// the number of messages consumed before the error or the end. Strings may alias msgs.
	Decode(msgs [][]byte, out *batch.Builder, row func(i int, k types.RowKind)) (n int, err error)
}

// BadRecord is a message that cannot be decoded. The connector adds table, split and offset.
type BadRecord struct {
	Column string // "" when the message as a whole is bad
	Offset int    // byte offset in the message, -1 when unknown
	Reason string
	Value  string // the offending text, shortened
}

// Error is the reason with column and value.
func (e *BadRecord) Error() string {
	s := e.Reason
	if e.Value != "" {
		s += ": " + e.Value
	}
	if e.Column != "" {
		s = "column " + e.Column + ": " + s
	}
	return s
}

// Encoder turns rows into messages. It is used by one goroutine.
type Encoder interface {
	// Encode appends one message per row of b that counts, in order, to out.
	Encode(b *batch.Batch, out *Messages) error
}

// Messages are encoded messages back to back: message i is Buf[Ends[i-1]:Ends[i]]. Null[i] marks a NULL message (a
// tombstone or a raw NULL); Null is nil when there is none.
type Messages struct {
	Buf  []byte
	Ends []int
	Null []bool
}

// Len is the number of messages.
func (m *Messages) Len() int { return len(m.Ends) }

// At is message i, nil when it is NULL.
func (m *Messages) At(i int) []byte {
	if m.Null != nil && m.Null[i] {
		return nil
	}
	start := 0
	if i > 0 {
		start = m.Ends[i-1]
	}
	if start == m.Ends[i] {
		return []byte{} // an empty message is not a NULL one
	}
	return m.Buf[start:m.Ends[i]:m.Ends[i]]
}

// Reset empties m, keeping its memory.
func (m *Messages) Reset() { m.Buf, m.Ends, m.Null = m.Buf[:0], m.Ends[:0], nil }
