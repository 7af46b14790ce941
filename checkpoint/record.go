package checkpoint

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/streamsql/streamsql/sql/diag"
)

// Durable records: manifests, the owner's fence, the notes "confirmed" and "discarded". A record is text,
//
//	streamsql-<kind> <version>\n
//	<JSON>\n
//	crc32c <8 hex digits> <length of all before this line>\n
//
// so that people can read it and a flipped bit or a short file is found. Files are written to <name>.tmp, synced,
// renamed and made durable by syncing the directory; the first error of a sync is final (a second sync may lie).

const (
	recordVersion  = 1
	maxRecordBytes = 1 << 30
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// errDamaged marks records and state files whose bytes are not what was written.
var errDamaged = errors.New("damaged")

func encodeRecord(kind string, v any) ([]byte, error) {
	body, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "streamsql-%s %d\n", kind, recordVersion)
	b.Write(body)
	b.WriteByte('\n')
	fmt.Fprintf(&b, "crc32c %08x %d\n", crc32.Checksum(b.Bytes(), castagnoli), b.Len())
	return b.Bytes(), readable(kind, b.Len())
}

// readable refuses to write what could not be read again.
func readable(kind string, size int) error {
	if size > maxRecordBytes {
		return fmt.Errorf("a %s record of %d bytes, more than the %d that are read", kind, size, maxRecordBytes)
	}
	return nil
}

// decodeRecord fails closed: anything unexpected is errDamaged, and v is only written when the checksum holds.
func decodeRecord(kind string, data []byte, v any) error {
	bad := func(format string, args ...any) error {
		return fmt.Errorf("%s record %w: %s", kind, errDamaged, fmt.Sprintf(format, args...))
	}
	trimmed, ok := bytes.CutSuffix(data, []byte("\n"))
	if !ok {
		return bad("%d bytes without an end", len(data))
	}
	at := bytes.LastIndexByte(trimmed, '\n') + 1
	var sum uint32
	var n int
	if _, err := fmt.Sscanf(string(data[at:]), "crc32c %08x %d\n", &sum, &n); err != nil || n != at {
		return bad("bad last line")
	}
	if want := fmt.Sprintf("crc32c %08x %d\n", sum, n); want != string(data[at:]) {
		return bad("bad last line")
	}
	if got := crc32.Checksum(data[:at], castagnoli); got != sum {
		return bad("crc32c is %08x, not %08x", got, sum)
	}
	var version int
	head, body, _ := bytes.Cut(data[:at], []byte("\n"))
	if _, err := fmt.Sscanf(string(head), "streamsql-"+kind+" %d", &version); err != nil {
		return bad("it begins with %.40q", head)
	}
	if version != recordVersion {
		return errorf(diag.Config, "%s record has format version %d, this program reads version %d", kind, version, recordVersion).
			WithHint("use the streamsql release that wrote it")
	}
	if err := json.Unmarshal(body, v); err != nil {
		return bad("%v", err)
	}
	return nil
}

// writeRecord replaces the record dir/name atomically and durably.
func writeRecord(fs vfs.FS, dir, name, kind string, v any, beforeRename func() error) error {
	data, err := encodeRecord(kind, v)
	if err != nil {
		return err
	}
	tmp := fs.PathJoin(dir, name+".tmp")
	if err := writeSynced(fs, tmp, data); err != nil {
		return err
	}
	if beforeRename != nil {
		if err := beforeRename(); err != nil {
			return err
		}
	}
	if err := fs.Rename(tmp, fs.PathJoin(dir, name)); err != nil {
		return err
	}
	return syncDir(fs, dir)
}

func writeSynced(fs vfs.FS, name string, data []byte) error {
	f, err := fs.Create(name, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	if _, err := f.Write(data); err != nil {
		f.Close()
		return err
	}
	if err := f.Sync(); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}

// syncFile makes the bytes of a file that was closed durable.
func syncFile(fs vfs.FS, path string) error {
	f, err := fs.OpenReadWrite(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

func syncDir(fs vfs.FS, dir string) error {
	d, err := fs.OpenDir(dir)
	if err != nil {
		return err
	}
	if err := d.Sync(); err != nil {
		d.Close()
		return err
	}
	return d.Close()
}

func readFile(fs vfs.FS, name string) ([]byte, error) {
	f, err := fs.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if st.Size() > maxRecordBytes {
		return nil, fmt.Errorf("%s %w: %d bytes", name, errDamaged, st.Size())
	}
	return io.ReadAll(f)
}

// readRecord decodes dir/name into v.
func readRecord(fs vfs.FS, dir, name, kind string, v any) error {
	data, err := readFile(fs, fs.PathJoin(dir, name))
	if err != nil {
		return err
	}
	return decodeRecord(kind, data, v)
}

// crcFile is the size and crc32c of a file.
func crcFile(fs vfs.FS, name string) (size int64, crc uint32, err error) {
	f, err := fs.Open(name, vfs.SequentialReadsOption)
	if err != nil {
		return 0, 0, err
	}
	defer f.Close()
	h := crc32.New(castagnoli)
	size, err = io.CopyBuffer(h, onlyReader{f}, make([]byte, 256<<10))
	return size, h.Sum32(), err
}

type onlyReader struct{ io.Reader }
