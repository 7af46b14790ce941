package file

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"path/filepath"
	"strings"

	"github.com/streamsql/streamsql/checkpoint"
)

// part is the payload of a committable: one closed file. Names are relative to the table's path, so that a table that
// was moved as a whole still commits.
type part struct {
	dir     string // "k=v/k2=v2", "" without partitions
	final   string // visible name
	lineage string
	size    int64
	rows    int64
	crc     uint32 // CRC-32C of the contents
}

const payloadVersion = 1

func (p part) encode() []byte {
	b := []byte{payloadVersion}
	for _, s := range []string{p.dir, p.final, p.lineage} {
		b = binary.AppendUvarint(b, uint64(len(s)))
		b = append(b, s...)
	}
	b = binary.AppendUvarint(b, uint64(p.size))
	b = binary.AppendUvarint(b, uint64(p.rows))
	return binary.LittleEndian.AppendUint32(b, p.crc)
}

func decodePart(b []byte) (p part, err error) {
	damaged := errors.New("damaged committable of connector 'filesystem'")
	if len(b) == 0 || b[0] != payloadVersion {
		return p, errors.New("not a committable of connector 'filesystem' of this version")
	}
	b = b[1:]
	uvarint := func() uint64 {
		v, n := binary.Uvarint(b)
		if n <= 0 {
			err, b = damaged, nil
			return 0
		}
		b = b[n:]
		return v
	}
	for _, s := range []*string{&p.dir, &p.final, &p.lineage} {
		n := uvarint()
		if err != nil || n > uint64(len(b)) {
			return p, damaged
		}
		*s, b = string(b[:n]), b[n:]
	}
	p.size, p.rows = int64(uvarint()), int64(uvarint())
	if err != nil || len(b) != 4 || !filepath.IsLocal(filepath.Join(p.dir, p.final)) {
		return p, damaged
	}
	p.crc = binary.LittleEndian.Uint32(b)
	return p, nil
}

func (p part) pending() string { return "." + p.final + pendingMark + p.lineage }

const (
	pendingMark  = ".pending."
	progressMark = ".inprogress."
)

// tag tells the files of different sinks of one job apart.
func tag(id checkpoint.SinkID) string {
	h := fnv.New32a()
	_, _ = h.Write([]byte(id))
	return fmt.Sprintf("%08x", h.Sum32())
}

// prefix starts the names of all files of a sink in a lineage.
func prefix(lineage string, id checkpoint.SinkID) string {
	short := strings.ReplaceAll(lineage, "-", "")
	if len(short) > 8 {
		short = short[:8]
	}
	return "part-" + short + "-" + tag(id) + "-"
}

// leftover reports whether name is an unfinished file of the sink in the lineage.
func leftover(name, lineage string, id checkpoint.SinkID) bool {
	return strings.HasPrefix(name, "."+prefix(lineage, id)) &&
		(strings.HasSuffix(name, progressMark+lineage) || strings.HasSuffix(name, pendingMark+lineage))
}
