package file

// Goal: rows are visible exactly once whatever step a crash hits. Method: the real protocol on a real directory; a crash
// drops the writer without Close, and failpoints stop it between two steps.

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/streamsql/streamsql/catalog"
	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/connectors"
	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/diag"
	"github.com/streamsql/streamsql/sql/types"
)

const lineage = "0a1b2c3d-1111-2222-3333-444455556666"

func sinkOf(t *testing.T, tab *catalog.Table, fence uint64) connectors.Sink {
	t.Helper()
	c := Connector()
	if err := c.Check(tab, connectors.UseSink); err != nil {
		t.Fatal(err)
	}
	modes, err := c.SinkModes(tab)
	if err != nil || modes[0].Delivery != connectors.TwoPhaseCommit {
		t.Fatal(modes, err)
	}
	s, err := c.NewSink(ctx, connectors.SinkSpec{ID: "sink/t", Table: tab, Schema: schemaOf(tab), Mode: modes[0], Parallel: 1,
		Job: connectors.JobInfo{Lineage: lineage, Fence: fence}})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Preflight(ctx); err != nil {
		t.Fatal(err)
	}
	return s
}

func openWriter(t *testing.T, s connectors.Sink, subtask int) connectors.Writer {
	t.Helper()
	w, err := s.Open(ctx, subtask)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func committerOf(t *testing.T, s connectors.Sink) checkpoint.Committer {
	t.Helper()
	c, err := s.Committer(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// put writes rows "a,b" or "a,b,day".
func put(t *testing.T, w connectors.Writer, tab *catalog.Table, rows ...string) {
	t.Helper()
	b := batch.NewBuilder(schemaOf(tab))
	for _, r := range rows {
		for i, v := range strings.Split(r, ",") {
			switch {
			case v == "NULL":
				b.Cols[i].AppendNull()
			case i == 0:
				var n int64
				_, _ = fmt.Sscan(v, &n)
				b.Cols[i].AppendI64(n)
			default:
				b.Cols[i].AppendStr(v)
			}
		}
		b.RowDone()
	}
	if err := w.Write(ctx, b.Finish()); err != nil {
		t.Fatal(err)
	}
}

func preCommit(t *testing.T, w connectors.Writer, id checkpoint.ID) []checkpoint.Committable {
	t.Helper()
	cs, err := w.PreCommit(ctx, id)
	if err != nil {
		t.Fatal(err)
	}
	return cs
}

func classify(t *testing.T, c checkpoint.Committer, cs []checkpoint.Committable) string {
	t.Helper()
	out, err := c.Classify(ctx, cs)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprint(out)
}

func TestWriteCommit(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new", "table")
	tab := table(dir)
	s := sinkOf(t, tab, 1)
	w, c := openWriter(t, s, 0), committerOf(t, s)
	if cs := preCommit(t, w, 1); len(cs) != 0 {
		t.Fatal("an empty checkpoint has committables:", cs)
	}
	put(t, w, tab, "1,x", "2,y")
	put(t, w, tab, "3,z")
	cs := preCommit(t, w, 2)
	if len(cs) != 1 || visible(t, dir) != "" || classify(t, c, cs) != "[open]" {
		t.Fatal(cs, tree(t, dir))
	}
	for range 2 { // committing again changes nothing
		if err := c.Commit(ctx, cs); err != nil {
			t.Fatal(err)
		}
		if visible(t, dir) != "1,x\n2,y\n3,z\n" || len(tree(t, dir)) != 1 || classify(t, c, cs) != "[committed]" {
			t.Fatal(tree(t, dir))
		}
	}
	put(t, w, tab, "4,q")
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if len(tree(t, dir)) != 1 {
		t.Fatal("Close left unlisted files:", tree(t, dir))
	}
	mustRead(t, tab, "+I1,x +I2,y +I3,z")
}

// A crash at any step, then recovery as the engine does it: commit what the checkpoint lists, abort the rest, replay.
func TestCrashAtEveryStep(t *testing.T) {
	for _, step := range []string{"write", "file.precommit.synced", "file.precommit.renamed", "precommitted", "file.commit.linked", "committed"} {
		t.Run(step, func(t *testing.T) {
			dir := t.TempDir()
			tab := table(dir)
			s := sinkOf(t, tab, 1)
			w, c := openWriter(t, s, 0), committerOf(t, s)
			put(t, w, tab, "1,x")
			first := preCommit(t, w, 1)
			if err := c.Commit(ctx, first); err != nil {
				t.Fatal(err)
			}
			put(t, w, tab, "2,y")
			var listed []checkpoint.Committable // by a durable checkpoint
			if strings.HasPrefix(step, "file.") {
				if err := checkpoint.SetFailpoint(step + ":1:error"); err != nil {
					t.Fatal(err)
				}
				defer func() { _ = checkpoint.SetFailpoint("") }()
			}
			if step != "write" {
				cs, err := w.PreCommit(ctx, 2)
				if (err != nil) != strings.HasPrefix(step, "file.precommit") {
					t.Fatal(err)
				}
				if err == nil {
					listed = cs
					if step != "precommitted" {
						err := c.Commit(ctx, cs)
						if (err != nil) != (step == "file.commit.linked") {
							t.Fatal(err)
						}
					}
				}
			}
			_ = checkpoint.SetFailpoint("")

			// The process is gone; another one takes over.
			s2 := sinkOf(t, tab, 2)
			c2 := committerOf(t, s2)
			if listed != nil {
				if err := c2.Commit(ctx, listed); err != nil {
					t.Fatal(err)
				}
			}
			if err := c2.Abort(ctx, append(first, listed...)); err != nil {
				t.Fatal(err)
			}
			w2 := openWriter(t, s2, 0)
			if listed == nil {
				put(t, w2, tab, "2,y") // replayed
			}
			put(t, w2, tab, "3,z")
			if err := c2.Commit(ctx, preCommit(t, w2, 3)); err != nil {
				t.Fatal(err)
			}
			if got := visible(t, dir); got != "1,x\n2,y\n3,z\n" {
				t.Fatalf("%q", got)
			}
			for name := range tree(t, dir) {
				if hidden(name) {
					t.Errorf("residue: %s", name)
				}
			}
		})
	}
}

// Abort leaves the files of other lineages, other sinks and other programs alone, and keeps what it is told to.
func TestAbortIsNarrow(t *testing.T) {
	dir := t.TempDir()
	tab := table(dir)
	s := sinkOf(t, tab, 1)
	w, c := openWriter(t, s, 0), committerOf(t, s)
	put(t, w, tab, "1,x")
	keep := preCommit(t, w, 1)
	put(t, w, tab, "2,y")
	drop := preCommit(t, w, 2)
	put(t, w, tab, "3,z") // in progress
	others := []string{
		".part-99999999-" + tag("sink/t") + "-1-0-1-0.pending.99999999-0000",
		"." + prefix(lineage, "sink/other") + "1-0-1-0.pending." + lineage,
		".something", "data.csv",
	}
	for _, o := range others {
		write(t, filepath.Join(dir, o), "theirs")
	}
	if err := c.Abort(ctx, keep); err != nil {
		t.Fatal(err)
	}
	left := tree(t, dir)
	for _, o := range others {
		if left[o] != "theirs" {
			t.Errorf("%s is gone", o)
		}
	}
	if len(left) != len(others)+1 || classify(t, c, keep) != "[open]" || classify(t, c, drop) != "[aborted]" {
		t.Fatal(slices.Sorted(maps.Keys(left)), classify(t, c, drop))
	}
	// The writer that was aborted cannot commit any more.
	if _, err := w.PreCommit(ctx, 3); err == nil {
		t.Fatal("a fenced writer pre-committed")
	}
}

func TestLostAndDamagedFiles(t *testing.T) {
	dir := t.TempDir()
	tab := table(dir)
	s := sinkOf(t, tab, 1)
	w, c := openWriter(t, s, 0), committerOf(t, s)
	put(t, w, tab, "1,x")
	cs := preCommit(t, w, 1)
	p, err := decodePart(cs[0].Payload)
	if err != nil {
		t.Fatal(err)
	}
	pending, final := filepath.Join(dir, p.pending()), filepath.Join(dir, p.final)
	write(t, pending, "2,x\n") // same size, other contents
	if _, err := c.Classify(ctx, cs); diag.CodeOf(err) != diag.Lost {
		t.Fatal(err)
	}
	if err := os.Remove(pending); err != nil {
		t.Fatal(err)
	}
	if got := classify(t, committerOf(t, s), cs); got != "[unknown]" {
		t.Fatal(got)
	}
	if err := c.Commit(ctx, cs); diag.CodeOf(err) != diag.Lost {
		t.Fatal(err)
	}
	write(t, final, "1,y\n") // somebody else's file under the name
	if err := c.Commit(ctx, cs); diag.CodeOf(err) != diag.Lost {
		t.Fatal(err)
	}
	if got := tree(t, dir)[p.final]; got != "1,y\n" {
		t.Fatal("the foreign file was replaced by", got)
	}
}

func TestRolling(t *testing.T) {
	dir := t.TempDir()
	tab := table(dir, "sink.rolling-policy.file-size=10b")
	s := sinkOf(t, tab, 1)
	w, c := openWriter(t, s, 0), committerOf(t, s)
	put(t, w, tab, "1,xxxx", "2,xxxx", "3,xxxx", "4,x")
	cs := preCommit(t, w, 1)
	if len(cs) != 2 {
		t.Fatalf("%d files", len(cs))
	}
	if err := c.Commit(ctx, cs); err != nil {
		t.Fatal(err)
	}
	if got := visible(t, dir); got != "1,xxxx\n2,xxxx\n3,xxxx\n4,x\n" {
		t.Fatal(got)
	}
	old := table(dir, "sink.rolling-policy.rollover-interval=0 s")
	w2 := openWriter(t, sinkOf(t, old, 2), 0)
	put(t, w2, old, "5,x")
	put(t, w2, old, "6,x")
	if cs := preCommit(t, w2, 2); len(cs) != 2 {
		t.Fatalf("%d files with rollover interval 0", len(cs))
	}
}

func TestPartitions(t *testing.T) {
	dir := t.TempDir()
	tab := partitioned(dir, "sink.partition-commit.policy.kind=success-file", "sink.partition-commit.success-file.name=_DONE")
	s := sinkOf(t, tab, 1)
	w, c := openWriter(t, s, 3), committerOf(t, s)
	put(t, w, tab, "1,x,m", "2,y,t", "3,z,m", "4,q,NULL", "5,r,a/b=c", "6,s,")
	cs := preCommit(t, w, 1)
	if err := c.Commit(ctx, cs); err != nil {
		t.Fatal(err)
	}
	byDir := map[string]string{}
	for name, content := range tree(t, dir) {
		byDir[filepath.Dir(name)] += content
		if base := filepath.Base(name); base != "_DONE" && !strings.HasPrefix(base, "part-0a1b2c3d-") {
			t.Error(name)
		}
	}
	want := map[string]string{"day=m": "1,x\n3,z\n", "day=t": "2,y\n", "day=__DEFAULT_PARTITION__": "4,q\n6,s\n", "day=a%2Fb%3Dc": "5,r\n"}
	if !maps.Equal(byDir, want) {
		t.Fatalf("%v", byDir)
	}
	mustRead(t, tab, "+I4,q,NULL +I6,s,NULL +I5,r,a/b=c +I1,x,m +I3,z,m +I2,y,t")
}

// More partitions than files may be open still end up complete.
func TestManyPartitions(t *testing.T) {
	dir := t.TempDir()
	tab := partitioned(dir)
	s := sinkOf(t, tab, 1)
	w, c := openWriter(t, s, 0), committerOf(t, s)
	for range 2 {
		for i := range maxOpen + 20 {
			put(t, w, tab, fmt.Sprintf("%d,x,%d", i, i))
		}
	}
	if n := len(w.(*writer).open); n > maxOpen {
		t.Fatalf("%d files open", n)
	}
	if err := c.Commit(ctx, preCommit(t, w, 1)); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(visible(t, dir), "\n"); n != 2*(maxOpen+20) {
		t.Fatalf("%d rows", n)
	}
}

func TestChangelogSink(t *testing.T) {
	dir := t.TempDir()
	tab := table(dir, "format=changelog-json")
	modes, err := Connector().SinkModes(tab)
	if err != nil || modes[0].Changelog != types.Retract {
		t.Fatal(modes, err)
	}
	s := sinkOf(t, tab, 1)
	w, c := openWriter(t, s, 0), committerOf(t, s)
	b := batch.NewBuilder(schemaOf(tab))
	b.Cols[0].AppendI64(1)
	b.Cols[1].AppendStr("x")
	b.RowKindDone(types.UpdateBefore)
	if err := w.Write(ctx, b.Finish()); err != nil {
		t.Fatal(err)
	}
	if err := c.Commit(ctx, preCommit(t, w, 1)); err != nil {
		t.Fatal(err)
	}
	mustRead(t, tab, "-U1,x")
}

func TestSinkRefusals(t *testing.T) {
	dir := t.TempDir()
	write(t, dir+"/f", "x")
	s, err := newSink(connectors.SinkSpec{ID: "s", Table: table(dir + "/f"), Schema: schemaOf(table(dir))})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Preflight(ctx); err == nil || !strings.Contains(err.Error(), "is not a directory") {
		t.Fatal(err)
	}
	raw := table(dir, "format=raw")
	raw.Columns = raw.Columns[1:]
	b := batch.NewBuilder(schemaOf(raw))
	b.Cols[0].AppendNull()
	b.RowDone()
	if err := openWriter(t, sinkOf(t, raw, 1), 0).Write(ctx, b.Finish()); diag.CodeOf(err) != diag.Data {
		t.Fatal(err)
	}
}

func FuzzDecode(f *testing.F) {
	f.Add(part{dir: "day=1", final: "part-1", lineage: "l", size: 5, rows: 2, crc: 7}.encode())
	f.Add(position{offset: 3, record: 1, size: 9, tail: 4}.encode())
	f.Fuzz(func(t *testing.T, b []byte) {
		_, _ = DescribePosition(b)
		if p, err := decodePart(b); err == nil {
			if q, err := decodePart(p.encode()); err != nil || q != p {
				t.Fatalf("%+v %+v %v", p, q, err)
			}
		}
		if p, err := decodePosition(b); err == nil {
			if q, err := decodePosition(p.encode()); err != nil || q != p {
				t.Fatalf("%+v %+v %v", p, q, err)
			}
		}
	})
}

// FuzzNames: the names of unfinished files are of their lineage and sink only, and a pending one leads back to its visible name,
// in its own directory.
func FuzzNames(f *testing.F) {
	p := part{final: prefix("l-1", "s") + "0-1", lineage: "l-1"}
	f.Add(p.pending(), "l-1", "s")
	f.Add("."+prefix("", "")+progressMark, "", "")
	f.Add(pendingMark, "", "s")
	f.Fuzz(func(t *testing.T, name, lineage, table string) {
		if strings.ContainsRune(name+lineage, filepath.Separator) {
			return
		}
		id := checkpoint.SinkID(table)
		c := &committer{sink: &sink{spec: connectors.SinkSpec{ID: id, Job: connectors.JobInfo{Lineage: lineage}}}, aborted: map[string]bool{}}
		c.remember(filepath.Join("dir", name))
		for path := range c.aborted {
			q := part{final: filepath.Base(path), lineage: lineage}
			if filepath.Dir(path) != "dir" || q.pending() != name {
				t.Fatalf("%q is taken for the pending file of %q", name, path)
			}
		}
		if leftover(name, lineage, id) && leftover(name, lineage, id+"x") {
			t.Fatalf("%q is a leftover of two sinks", name)
		}
	})
}
