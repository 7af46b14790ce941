package checkpoint

import (
	"context"
	"hash/crc32"
	"strings"

	"github.com/streamsql/streamsql/sql/diag"
)

// inFlightSuffix names the files of what was in flight at a subtask's inputs.
const inFlightSuffix = ".inflight"

// InFlight tells whether f holds what was in flight at a subtask's inputs when a barrier overtook it, not keyed state.
func (f StateFile) InFlight() bool { return strings.HasSuffix(f.Path, inFlightSuffix) }

// WriteInFlight makes data, what is in flight at the inputs of the subtask with the given file name, a file of checkpoint
// id, durably.
func WriteInFlight(ctx context.Context, o *Owner, id ID, name string, data []byte) (StateFile, error) {
	if err := ctx.Err(); err != nil {
		return StateFile{}, err
	}
	if err := Failpoint("inflight.write"); err != nil {
		return StateFile{}, err
	}
	f := StateFile{Path: o.fs.PathJoin(chkName(id), name+inFlightSuffix), Size: int64(len(data)), CRC32C: crc32.Checksum(data, castagnoli)}
	dir := o.fs.PathJoin(o.dir, chkName(id))
	err := mkdirAllSynced(o.fs, dir)
	if err == nil {
		err = writeSynced(o.fs, o.fs.PathJoin(o.dir, f.Path), data)
	}
	if err == nil {
		err = syncDir(o.fs, dir)
	}
	if err != nil {
		return StateFile{}, errorf(diag.External, "in-flight data of checkpoint %d cannot be written to %q", id, o.dir).Wrap(err).
			WithHint("check free space and permissions of the state directory")
	}
	return f, nil
}

// ReadInFlight reads what WriteInFlight wrote, verified.
func ReadInFlight(ctx context.Context, o *Owner, f StateFile) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	data, err := readFile(o.fs, o.fs.PathJoin(o.dir, f.Path))
	if err != nil {
		return nil, errorf(diag.External, "in-flight data %s cannot be read", f.Path).Wrap(err)
	}
	if int64(len(data)) != f.Size || crc32.Checksum(data, castagnoli) != f.CRC32C {
		return nil, errorf(diag.Data, "in-flight data %s is damaged: it is not what the checkpoint's manifest says", f.Path).
			WithHint("restore an older checkpoint")
	}
	return data, nil
}
