package kafka

import (
	"encoding/binary"
	"fmt"
	"time"

	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/sql/diag"
)

// txnRef is a pre-committed transaction: all it takes to commit it from another process and to prove its outcome.
type txnRef struct {
	id        string // transactional id
	pid       int64
	epoch     int16
	tv        int8 // the cluster's finalized transaction.version when the transaction began; decides the EndTxn version
	ckpt      checkpoint.ID
	startMs   int64 // of the first row, Unix milliseconds
	timeoutMs int64 // transaction.timeout.ms
	records   int64 // acknowledged
	witness   witness
	clusterID string // "" when the broker does not tell
	bootstrap string // servers the transaction was written through, for messages
	subtasks  int    // subtasks and slots in use, so that a later run with fewer of them fences all ids
	slots     int
}

// witness is a record of the transaction. The first control record of the transaction's producer id behind it is the
// outcome.
type witness struct {
	topic     string
	topicID   [16]byte // zero when the broker does not tell
	partition int32
	offset    int64
}

func (w witness) String() string { return fmt.Sprintf("%s-%d@%d", w.topic, w.partition, w.offset) }

const committableVersion = 1

// encode is the payload of a checkpoint.Committable: a version byte, then the fields in the order below; integers as
// varints, strings with their length before them.
func (t *txnRef) encode() []byte {
	b := []byte{committableVersion}
	b = appendString(b, t.id)
	b = binary.AppendVarint(b, t.pid)
	b = binary.AppendVarint(b, int64(t.epoch))
	b = binary.AppendVarint(b, int64(t.tv))
	b = binary.AppendUvarint(b, uint64(t.ckpt))
	b = binary.AppendVarint(b, t.startMs)
	b = binary.AppendVarint(b, t.timeoutMs)
	b = binary.AppendVarint(b, t.records)
	b = appendString(b, t.witness.topic)
	b = append(b, t.witness.topicID[:]...)
	b = binary.AppendVarint(b, int64(t.witness.partition))
	b = binary.AppendVarint(b, t.witness.offset)
	b = appendString(b, t.clusterID)
	b = appendString(b, t.bootstrap)
	b = binary.AppendVarint(b, int64(t.subtasks))
	return binary.AppendVarint(b, int64(t.slots))
}

func appendString(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// fields reads what encode and the position codec write. The first damage sticks; later reads return zero values.
type fields struct {
	b   []byte
	bad bool
}

func (f *fields) uvarint() uint64 {
	v, n := binary.Uvarint(f.b)
	if n <= 0 {
		f.bad, f.b = true, nil
		return 0
	}
	f.b = f.b[n:]
	return v
}

// varint reads an integer in [lo, hi].
func (f *fields) varint(lo, hi int64) int64 {
	v, n := binary.Varint(f.b)
	if n <= 0 || v < lo || v > hi {
		f.bad, f.b = true, nil
		return 0
	}
	f.b = f.b[n:]
	return v
}

func (f *fields) string() string {
	n := f.uvarint()
	if f.bad || n > uint64(len(f.b)) {
		f.bad, f.b = true, nil
		return ""
	}
	s := string(f.b[:n])
	f.b = f.b[n:]
	return s
}

func (f *fields) id() (id [16]byte) {
	if len(f.b) < len(id) {
		f.bad, f.b = true, nil
		return id
	}
	copy(id[:], f.b)
	f.b = f.b[len(id):]
	return id
}

const (
	maxInt64 = 1<<63 - 1
	minInt64 = -1 << 63
	maxInt32 = 1<<31 - 1
	maxInt16 = 1<<15 - 1
)

func decodeTxnRef(b []byte) (txnRef, error) {
	var t txnRef
	if len(b) == 0 || b[0] != committableVersion {
		return t, diag.New(diag.Internal, diag.Pos{}, "kafka transaction in the checkpoint has an unknown encoding").
			WithHint("it was written by a newer release; restore with that release")
	}
	f := fields{b: b[1:]}
	t.id = f.string()
	t.pid = f.varint(0, maxInt64)
	t.epoch = int16(f.varint(0, maxInt16))
	t.tv = int8(f.varint(0, 127))
	t.ckpt = checkpoint.ID(f.uvarint())
	t.startMs = f.varint(minInt64, maxInt64)
	t.timeoutMs = f.varint(0, maxInt64)
	t.records = f.varint(0, maxInt64)
	t.witness.topic = f.string()
	t.witness.topicID = f.id()
	t.witness.partition = int32(f.varint(0, maxInt32))
	t.witness.offset = f.varint(0, maxInt64)
	t.clusterID = f.string()
	t.bootstrap = f.string()
	t.subtasks = int(f.varint(0, maxInt32))
	t.slots = int(f.varint(0, maxInt32))
	if f.bad || len(f.b) != 0 {
		return txnRef{}, diag.New(diag.Internal, diag.Pos{}, "kafka transaction in the checkpoint is damaged").
			WithDetail("its %d bytes do not decode", len(b))
	}
	return t, nil
}

// deadline is when the broker aborts the transaction if nobody ends it.
func (t *txnRef) deadline() time.Time { return time.UnixMilli(t.startMs + t.timeoutMs) }

func (t *txnRef) String() string {
	return fmt.Sprintf("transaction %s of checkpoint %d (producer %d epoch %d, %d records, witness %s)",
		t.id, t.ckpt, t.pid, t.epoch, t.records, t.witness)
}

// DescribeCommittable is a committable's payload for people, as "checkpoint show" prints it: id, producer, epoch, age
// against the timeout at now, and the witness record.
func DescribeCommittable(payload []byte, now time.Time) (string, error) {
	if isAhead(payload) {
		a, err := decodeAhead(payload)
		if err != nil {
			return "", err
		}
		return a.String() + "; they do not time out", nil
	}
	t, err := decodeTxnRef(payload)
	if err != nil {
		return "", err
	}
	age := now.Sub(time.UnixMilli(t.startMs)).Round(time.Second)
	verdict := "open until " + t.deadline().UTC().Format(time.RFC3339)
	if now.After(t.deadline()) {
		verdict = "past its timeout: aborted by the broker unless it is committed already"
	}
	return fmt.Sprintf("%s, age %s of %s, %s", t.String(), age, time.Duration(t.timeoutMs)*time.Millisecond, verdict), nil
}
