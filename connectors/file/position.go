package file

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
)

// position is where to resume a file.
type position struct {
	offset int64  // of the next record
	record int64  // number of records before it
	size   int64  // of the file when it was last looked at; a bounded read ends there
	tail   uint32 // CRC-32C of the last min(offset, tailLen) bytes before offset
}

const (
	positionVersion = 1
	// tailLen bytes before the offset identify a file's contents well enough to notice a replaced one.
	tailLen = 4096
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func (p position) encode() []byte {
	b := []byte{positionVersion}
	b = binary.AppendVarint(b, p.offset)
	b = binary.AppendVarint(b, p.record)
	b = binary.AppendVarint(b, p.size)
	return binary.LittleEndian.AppendUint32(b, p.tail)
}

func decodePosition(b []byte) (p position, err error) {
	if len(b) == 0 || b[0] != positionVersion {
		return p, errors.New("not a position of connector 'filesystem'")
	}
	b = b[1:]
	for _, v := range []*int64{&p.offset, &p.record, &p.size} {
		x, n := binary.Varint(b)
		if n <= 0 || x < 0 {
			return p, errors.New("damaged position")
		}
		*v, b = x, b[n:]
	}
	if len(b) != 4 {
		return p, errors.New("damaged position")
	}
	p.tail = binary.LittleEndian.Uint32(b)
	return p, nil
}
