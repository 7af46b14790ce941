package exec

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/cockroachdb/errors/oserror"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/sql/diag"
)

// simFileTarget is a directory of files on the job's disk: connectors/file's writer.go and committer.go as a model, over a file
// system that can lose what is not synced.
type simFileTarget struct{ w *simWorld }

const simOut = "/out"

const (
	simProgress = ".progress"
	simPending  = ".pending"
)

func (t *simFileTarget) visible() (rows []int) {
	fs := t.w.disk
	names, err := fs.List(simOut)
	if err != nil && !oserror.IsNotExist(err) {
		panic(err)
	}
	slices.Sort(names)
	for _, name := range names {
		if strings.HasPrefix(name, ".") {
			continue
		}
		f, err := fs.Open(fs.PathJoin(simOut, name))
		if err != nil {
			panic(err)
		}
		text, err := io.ReadAll(f)
		if err != nil {
			panic(err)
		}
		f.Close()
		rows = append(rows, parseRows(strings.ReplaceAll(string(text), "\x00", ""))...)
	}
	return rows
}

func (t *simFileTarget) leftover() string { return "" }

func (t *simFileTarget) committer(a *simAttempt) checkpoint.Committer {
	return &simFileCommitter{a: a, w: t.w, aborted: map[string]bool{}}
}

func (t *simFileTarget) writers(a *simAttempt, n int) (out []simWriter) {
	for i := range n {
		out = append(out, &simFileWriter{a: a, w: t.w, subtask: i})
	}
	return out
}

// syncOut makes the names in the directory durable.
func (a *simAttempt) syncOut() error {
	if a.w.wrong == "the directory is not synced" {
		return nil
	}
	fs := a.fs()
	d, err := fs.OpenDir(simOut)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

type simFileWriter struct {
	a       *simAttempt
	w       *simWorld
	subtask int
	made    int
	name    string
	f       vfs.File
}

func (x *simFileWriter) must(err error) {
	if err != nil {
		x.a.fail("%v", err)
	}
}

func (x *simFileWriter) write(row int) {
	fs := x.a.fs()
	if x.f == nil {
		x.must(fs.MkdirAll(simOut, 0o755))
		d, err := fs.OpenDir("/")
		x.must(err)
		x.must(errors.Join(d.Sync(), d.Close()))
		x.made++
		x.name = fmt.Sprintf("part-%04d-%d-%04d", x.a.n, x.subtask, x.made)
		x.f, err = fs.Create(fs.PathJoin(simOut, "."+x.name+simProgress), vfs.WriteCategoryUnspecified)
		x.must(err)
	}
	_, err := fmt.Fprintln(x.f, row)
	x.must(err)
}

func (x *simFileWriter) preCommit(id checkpoint.ID) []checkpoint.Committable {
	if x.f == nil {
		return nil
	}
	if x.w.wrong != "the file is not synced" {
		x.must(x.f.Sync())
	}
	x.must(x.f.Close())
	x.f = nil
	fs := x.a.fs()
	x.a.step()
	x.must(fs.Rename(fs.PathJoin(simOut, "."+x.name+simProgress), fs.PathJoin(simOut, "."+x.name+simPending)))
	x.must(x.a.syncOut())
	return x.a.committable(id, x.subtask, x.name)
}

func (x *simFileWriter) committed(checkpoint.ID) {}

type simFileCommitter struct {
	a       *simAttempt
	w       *simWorld
	aborted map[string]bool
}

func (c *simFileCommitter) Close() error { return nil }

func (c *simFileCommitter) paths(p checkpoint.Committable) (pending, final string) {
	fs := c.w.disk
	return fs.PathJoin(simOut, "."+string(p.Payload)+simPending), fs.PathJoin(simOut, string(p.Payload))
}

func (c *simFileCommitter) has(path string) bool {
	_, err := c.w.disk.Stat(path)
	return err == nil
}

func (c *simFileCommitter) Classify(ctx context.Context, cs []checkpoint.Committable) (out []checkpoint.Outcome, err error) {
	for _, p := range cs {
		c.a.step()
		pending, final := c.paths(p)
		switch {
		case c.has(final):
			out = append(out, checkpoint.OutcomeCommitted)
		case c.has(pending):
			out = append(out, checkpoint.OutcomeOpen)
		case c.aborted[pending]:
			out = append(out, checkpoint.OutcomeAborted)
		default:
			out = append(out, checkpoint.OutcomeUnknown)
		}
	}
	return out, nil
}

func (c *simFileCommitter) Commit(ctx context.Context, cs []checkpoint.Committable) error {
	fs := c.a.fs()
	for _, p := range cs {
		c.a.step()
		pending, final := c.paths(p)
		switch {
		case c.has(final):
		case !c.has(pending):
			return diag.New(diag.Lost, diag.Pos{}, "the rows of checkpoint %d in %s are lost", p.Checkpoint, final)
		default:
			if err := fs.Link(pending, final); err != nil {
				return err
			}
		}
		if err := fs.Remove(pending); err != nil && !oserror.IsNotExist(err) {
			return err
		}
	}
	return c.a.syncOut()
}

func (c *simFileCommitter) Abort(ctx context.Context, keep []checkpoint.Committable) error {
	c.a.step()
	fs := c.a.fs()
	names, err := fs.List(simOut)
	if oserror.IsNotExist(err) {
		return nil
	}
	if err != nil {
		return err
	}
	slices.Sort(names)
	for _, name := range names {
		path := fs.PathJoin(simOut, name)
		kept := slices.ContainsFunc(keep, func(p checkpoint.Committable) bool { pending, _ := c.paths(p); return pending == path })
		if !strings.HasPrefix(name, ".") || kept {
			continue
		}
		if err := fs.Remove(path); err != nil && !oserror.IsNotExist(err) {
			return err
		}
		c.aborted[path] = true
	}
	return nil
}
