package checkpoint

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"slices"

	"github.com/cockroachdb/errors/oserror"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// TraceFile keeps the traces of a job's last checkpoints in its directory: a line of JSON per change, the last line of a
// checkpoint holds. It is for people, so nothing waits for it: lines are not synced (they survive the process, a power
// cut may cost the last ones), and a file that cannot be written is given up with a warning.
type TraceFile struct {
	owner *Owner
	log   *slog.Logger
	f     vfs.File
	size  int
}

const (
	traceName = "trace"
	// traceLimit is the size at which the file is written anew from what is remembered.
	traceLimit = 1 << 20
	// traceSubtasks is how many subtasks of a checkpoint are kept.
	traceSubtasks = 5
)

// OpenTraces reads what is remembered of the job whose directory owner holds. Damage costs the memory only.
func OpenTraces(owner *Owner, log *slog.Logger) (*Traces, *TraceFile) {
	old, err := ReadTraces(owner.fs, owner.dir)
	if err != nil {
		log.Warn("the trace of earlier checkpoints cannot be read", "err", err)
	}
	list := make([]*Trace, 0, len(old))
	for i := range slices.Backward(old) {
		list = append(list, &old[i])
	}
	t := NewTraces(list, owner.fence)
	f := &TraceFile{owner: owner, log: log}
	f.rewrite(t)
	return t, f
}

// Write adds what changed in t.
func (f *TraceFile) Write(t *Traces) {
	changed := t.Changed()
	if f.f == nil || len(changed) == 0 {
		return
	}
	if f.size > traceLimit {
		f.rewrite(t)
		return
	}
	f.append(changed)
}

func (f *TraceFile) append(ts []*Trace) {
	var b bytes.Buffer
	for _, x := range ts {
		line, err := json.Marshal(shortened(x))
		if err != nil {
			f.giveUp(err)
			return
		}
		b.Write(line)
		b.WriteByte('\n')
	}
	if _, err := f.f.Write(b.Bytes()); err != nil {
		f.giveUp(err)
		return
	}
	f.size += b.Len()
}

// shortened is x with the slowest subtasks only.
func shortened(x *Trace) Trace {
	c := *x
	c.Subtasks = c.Subtasks[:min(len(c.Subtasks), traceSubtasks)]
	c.Waiting = c.Waiting[:min(len(c.Waiting), traceSubtasks)]
	c.By = c.By[:min(len(c.By), traceSubtasks)]
	return c
}

// rewrite replaces the file by one with what is remembered.
func (f *TraceFile) rewrite(t *Traces) {
	f.Close()
	fs, dir := f.owner.fs, f.owner.dir
	tmp := fs.PathJoin(dir, traceName+".tmp")
	var err error
	if f.f, err = fs.Create(tmp, vfs.WriteCategoryUnspecified); err != nil {
		f.giveUp(err)
		return
	}
	f.size = 0
	f.append(t.list)
	if f.f == nil {
		return
	}
	if err := fs.Rename(tmp, fs.PathJoin(dir, traceName)); err != nil {
		f.giveUp(err)
	}
}

func (f *TraceFile) giveUp(err error) {
	f.log.Warn("the trace of checkpoints is not written any more", "err", err)
	f.Close()
}

// Close releases the file.
func (f *TraceFile) Close() {
	if f.f != nil {
		_ = f.f.Close() // nothing depends on it
		f.f = nil
	}
}

// ReadTraces reads the traces of the last checkpoints of a job's directory, newest first, without owning it; none when
// there is no file. Lines that cannot be read, such as one that is just being written, are left out.
func ReadTraces(fs vfs.FS, dir string) ([]Trace, error) {
	data, err := readFile(fs, fs.PathJoin(dir, traceName))
	if err != nil {
		if oserror.IsNotExist(err) {
			return nil, nil
		}
		return nil, err
	}
	return decodeTraces(data), nil
}

func decodeTraces(data []byte) []Trace {
	var list []Trace
	at := map[ID]int{}
	for line := range bytes.Lines(data) {
		var x Trace
		if json.Unmarshal(line, &x) != nil || x.ID == 0 {
			continue
		}
		if i, ok := at[x.ID]; ok {
			list[i] = x
			continue
		}
		at[x.ID] = len(list)
		list = append(list, x)
	}
	slices.SortStableFunc(list, func(a, b Trace) int {
		switch {
		case a.ID > b.ID:
			return -1
		case a.ID < b.ID:
			return 1
		}
		return 0
	})
	return list[:min(len(list), keptTraces)]
}
