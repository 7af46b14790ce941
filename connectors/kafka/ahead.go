package kafka

import (
	"encoding/binary"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/streamsql/streamsql/sql/diag"
)

// writeAhead is the value of 'sink.commit-protocol' that keeps the records of a checkpoint in it.
const writeAhead = "write-ahead"

// aheadVersion is the first byte of a payload that holds records; committableVersion that of one that names a transaction.
const aheadVersion = 2

// aheadRef is a payload of the write-ahead protocol: all it takes to write the records from another process, once.
type aheadRef struct {
	id        string // transactional id that writes them, one per subtask
	markers   string // topic of the marker records
	markersID [16]byte
	clusterID string // "" when the broker does not tell
	bootstrap string // servers of the table, for messages
	subtasks  int    // subtasks in use, so that a later run with fewer of them fences all ids
	rows      int64
	data      []byte // the records, as appendRecord writes them
}

func isAhead(payload []byte) bool { return len(payload) > 0 && payload[0] == aheadVersion }

// encode is the payload: the version, the fields in the order below, and the records to the end; integers as varints,
// strings with their length before them.
func (a *aheadRef) encode() []byte {
	b := make([]byte, 1, 128+len(a.data))
	b[0] = aheadVersion
	b = appendString(b, a.id)
	b = appendString(b, a.markers)
	b = append(b, a.markersID[:]...)
	b = appendString(b, a.clusterID)
	b = appendString(b, a.bootstrap)
	b = binary.AppendVarint(b, int64(a.subtasks))
	b = binary.AppendVarint(b, a.rows)
	return append(b, a.data...)
}

func decodeAhead(b []byte) (aheadRef, error) {
	var a aheadRef
	if !isAhead(b) {
		return a, diag.New(diag.Internal, diag.Pos{}, "kafka records in the checkpoint have an unknown encoding").
			WithHint("they were written by a newer release; restore with that release")
	}
	f := fields{b: b[1:]}
	a.id = f.string()
	a.markers = f.string()
	a.markersID = f.id()
	a.clusterID = f.string()
	a.bootstrap = f.string()
	a.subtasks = int(f.varint(0, maxInt32))
	a.rows = f.varint(0, maxInt64)
	if f.bad {
		return aheadRef{}, a.damaged(len(b))
	}
	a.data = f.b
	return a, nil
}

func (a *aheadRef) damaged(n int) error {
	return diag.New(diag.Internal, diag.Pos{}, "kafka records in the checkpoint are damaged").
		WithDetail("the %d bytes of %s do not decode", n, a.String())
}

func (a *aheadRef) String() string {
	return fmt.Sprintf("%d rows kept in the checkpoint for transactional id %s", a.rows, a.id)
}

// aheadEncoder collects the records of one subtask between two barriers. A topic's name is written once, at its first
// record; later ones refer to it by number.
type aheadEncoder struct {
	data   []byte
	rows   int64
	topics map[string]uint64 // number from 1, in the order of their first records
	last   string            // topic of the newest record, and its number
	lastNo uint64
}

// add appends a record: topic (0 and its name, or its number), partition (-1 = the partitioner's choice), timestamp in
// Unix milliseconds, key, value, headers. NULL and empty differ.
func (e *aheadEncoder) add(r *kgo.Record) {
	b := e.data
	if r.Topic == e.last && e.lastNo > 0 {
		b = binary.AppendUvarint(b, e.lastNo)
	} else if n := e.topics[r.Topic]; n > 0 {
		e.last, e.lastNo = r.Topic, n
		b = binary.AppendUvarint(b, n)
	} else {
		if e.topics == nil {
			e.topics = map[string]uint64{}
		}
		e.last, e.lastNo = r.Topic, uint64(len(e.topics)+1)
		e.topics[r.Topic] = e.lastNo
		b = appendString(binary.AppendUvarint(b, 0), r.Topic)
	}
	b = binary.AppendVarint(b, int64(r.Partition))
	b = binary.AppendVarint(b, r.Timestamp.UnixMilli())
	b = appendNullable(b, r.Key)
	b = appendNullable(b, r.Value)
	b = binary.AppendUvarint(b, uint64(len(r.Headers)))
	for _, h := range r.Headers {
		b = appendNullable(appendString(b, h.Key), h.Value)
	}
	e.data = b
	e.rows++
}

// take returns what was collected and begins anew; the caller owns the bytes.
func (e *aheadEncoder) take() (data []byte, rows int64) {
	data, rows = e.data, e.rows
	*e = aheadEncoder{}
	return data, rows
}

// appendNullable writes 0 for nil, else the length plus one and the bytes.
func appendNullable(b, v []byte) []byte {
	if v == nil {
		return binary.AppendUvarint(b, 0)
	}
	return append(binary.AppendUvarint(b, uint64(len(v))+1), v...)
}

func (f *fields) nullable() []byte {
	n := f.uvarint()
	if n == 0 {
		return nil
	}
	if n--; n > uint64(len(f.b)) {
		f.bad, f.b = true, nil
		return nil
	}
	v := f.b[:n:n]
	f.b = f.b[n:]
	return v
}

// records decodes the records; keys and values point into the payload.
func (a *aheadRef) records() ([]*kgo.Record, error) {
	f := fields{b: a.data}
	var topics []string
	var out []*kgo.Record
	for len(f.b) > 0 && !f.bad {
		r := &kgo.Record{}
		switch n := f.uvarint(); {
		case f.bad || n > uint64(len(topics)):
			f.bad = true
		case n > 0:
			r.Topic = topics[n-1]
		default:
			r.Topic = f.string()
			topics = append(topics, r.Topic)
		}
		r.Partition = int32(f.varint(anyPartition, maxInt32))
		r.Timestamp = time.UnixMilli(f.varint(minInt64, maxInt64))
		r.Key = f.nullable()
		r.Value = f.nullable()
		for n := f.uvarint(); n > 0 && !f.bad; n-- {
			h := kgo.RecordHeader{Key: f.string()}
			h.Value = f.nullable()
			r.Headers = append(r.Headers, h)
		}
		out = append(out, r)
	}
	if f.bad || int64(len(out)) != a.rows {
		return nil, a.damaged(len(a.data))
	}
	return out, nil
}
