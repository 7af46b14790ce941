package kafka

import (
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"

	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/sql/diag"
)

// noStop marks a split without end.
const noStop = -1

// position is where to resume a partition.
type position struct {
	topicID [16]byte // zero when the broker does not tell; another id means that the topic was created again
	next    int64    // offset of the next record, control records counted
	epoch   int32    // leader epoch of the last record, -1 unknown; detects a log cut by an unclean election
	stop    int64    // the first offset not to read, noStop = none; resolved once, at the start
}

const positionVersion = 1

func (p position) encode() []byte {
	b := []byte{positionVersion}
	b = append(b, p.topicID[:]...)
	b = binary.AppendVarint(b, p.next)
	b = binary.AppendVarint(b, int64(p.epoch))
	return binary.AppendVarint(b, p.stop)
}

func decodePosition(b []byte) (position, error) {
	var p position
	bad := diag.New(diag.Internal, diag.Pos{}, "kafka position in the checkpoint is damaged or of a newer release")
	if len(b) == 0 || b[0] != positionVersion {
		return p, bad
	}
	f := fields{b: b[1:]}
	p.topicID = f.id()
	p.next = f.varint(0, maxInt64)
	p.epoch = int32(f.varint(-1, maxInt32))
	p.stop = f.varint(noStop, maxInt64)
	if f.bad || len(f.b) != 0 {
		return position{}, bad
	}
	return p, nil
}

// DescribePosition is a split's position for people: "offset 42".
func DescribePosition(next []byte) (string, error) {
	p, err := decodePosition(next)
	if err != nil {
		return "", err
	}
	if p.stop == noStop {
		return fmt.Sprintf("offset %d", p.next), nil
	}
	return fmt.Sprintf("offset %d of %d", p.next, p.stop), nil
}

// partition is a topic and a partition number.
type partition struct {
	topic string
	num   int32
}

func (p partition) split() checkpoint.Split {
	return checkpoint.Split(p.topic + "-" + strconv.Itoa(int(p.num)))
}

func (p partition) String() string { return fmt.Sprintf("topic %s, partition %d", p.topic, p.num) }

// parseSplit is the inverse of partition.split.
func parseSplit(s checkpoint.Split) (partition, error) {
	i := strings.LastIndexByte(string(s), '-')
	if i > 0 {
		if n, err := strconv.ParseUint(string(s[i+1:]), 10, 31); err == nil {
			return partition{string(s[:i]), int32(n)}, nil
		}
	}
	return partition{}, diag.New(diag.Internal, diag.Pos{}, "'%s' is not a kafka split", s)
}
