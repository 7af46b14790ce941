package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/streamsql/streamsql"
	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/cmd/streamsql/control"
	"github.com/streamsql/streamsql/sql/diag"
)

const savepointDoc = `A savepoint is a copy of a checkpoint in a directory of its own, with all of its output committed. It can be moved, and
started from with other parallelism, less or more memory, or a changed statement: streamsql run job.sql --restore PATH.

  create [PATH]          of the job that runs in --state-dir, which goes on; when no process owns the directory, of the
                         newest checkpoint whose output is committed. PATH is a directory that does not exist; by default
                         one is made where 'execution.checkpointing.savepoint-dir' says, or in STATE-DIR/savepoints.
  list [DIR…]            the savepoints in directories; by default those of all state directories below .streamsql
  show PATH [FILE…]      what a savepoint holds; with SQL files, what of it their INSERT would go on with, and what not
  verify PATH…           read every file and compare its checksum
  dispose PATH…          remove savepoints; jobs that were started from them do not need them`

func savepointCommand(args []string, out, errs io.Writer) int {
	f := newFlags("savepoint", "create|list|show|verify|dispose", savepointDoc, errs)
	f.examples = `  streamsql savepoint create --state-dir .streamsql/job
  streamsql savepoint create --state-dir .streamsql/job --job insert-into_f /backup/monday
  streamsql savepoint list /backup
  streamsql savepoint show /backup/monday job.sql
  streamsql run job.sql --state-dir .streamsql/job2 --restore /backup/monday
`
	s := &savepoints{flags: f, out: out, errs: errs}
	f.settingFlags()
	f.set.StringVar(&f.stateDir, "state-dir", "", "state `directory` of the job; by default the only one below .streamsql")
	f.set.StringVar(&s.job, "job", "", "the job's `id`, the beginning of one, or its pipeline.name; not needed when there is one")
	f.set.StringVar(&f.output, "o", "text", "`format`: text or json")
	f.set.DurationVar(&s.timeout, "timeout", 0, "how long create waits for the running job, such as 5m; 0 = until it is done")
	f.set.BoolVar(&f.embedded, "embedded-kafka", false, "show: assume an embedded broker for Kafka tables without bootstrap servers")
	pos, code, ok := f.parse(args, out)
	if !ok {
		return code
	}
	verbs := map[string]func([]string) error{"create": s.create, "list": s.list, "show": s.show, "verify": s.verify, "dispose": s.dispose}
	least := map[string]int{"show": 1, "verify": 1, "dispose": 1}
	if len(pos) == 0 || verbs[pos[0]] == nil {
		return f.usage(errors.New("what to do is missing or unknown: create, list, show, verify or dispose"))
	}
	switch n := len(pos) - 1; {
	case n < least[pos[0]]:
		return f.usage(fmt.Errorf("%s needs the PATH of a savepoint", pos[0]))
	case pos[0] == "create" && n > 1:
		return f.usage(fmt.Errorf("create takes one PATH"))
	case f.output != "text" && f.output != "json":
		return f.usage(fmt.Errorf("-o %s: use text or json", f.output))
	}
	used := map[string][]string{"create": {"state-dir", "job", "timeout", "o"}, "list": {"state-dir", "o"}, "show": {"embedded-kafka", "D", "o"},
		"verify": {"o"}, "dispose": {"o"}}
	if err := f.only(pos[0], used[pos[0]]...); err != nil {
		return f.usage(err)
	}
	if err := verbs[pos[0]](pos[1:]); err != nil {
		return fail(errs, err, s.src)
	}
	return exitOK
}

// savepoints is a call of the command.
type savepoints struct {
	*flags
	out, errs io.Writer
	job       string
	timeout   time.Duration
	src       source // of an error
}

// waitContext ends when the flag --timeout says.
func waitContext(timeout time.Duration) (context.Context, context.CancelFunc) {
	if timeout > 0 {
		return context.WithTimeout(context.Background(), timeout)
	}
	return context.WithCancel(context.Background())
}

// findStateDir is the state directory a command is about: the flag's, or the only one there is.
func (f *flags) findStateDir() (string, error) {
	if f.stateDir != "" {
		if _, err := os.Stat(f.stateDir); err != nil {
			return "", diag.New(diag.Config, diag.Pos{}, "no state directory %q", f.stateDir).WithHint("give the directory that the job's --state-dir named")
		}
		return f.stateDir, nil
	}
	found, _ := filepath.Glob(filepath.Join(".streamsql", "*", "jobs"))
	switch len(found) {
	case 0:
		return "", diag.New(diag.Config, diag.Pos{}, "there is no state directory below .streamsql").WithHint("name it with --state-dir")
	case 1:
		return filepath.Dir(found[0]), nil
	}
	dirs := make([]string, len(found))
	for i, d := range found {
		dirs[i] = filepath.Dir(d)
	}
	return "", diag.New(diag.Config, diag.Pos{}, "there are %d state directories below .streamsql", len(found)).
		WithDetail("%s", strings.Join(dirs, "\n")).WithHint("name one with --state-dir")
}

func (s *savepoints) create(args []string) error {
	dir, err := s.findStateDir()
	if err != nil {
		return err
	}
	path := ""
	if len(args) > 0 {
		if path, err = filepath.Abs(args[0]); err != nil {
			return err
		}
	}
	ctx, cancel := waitContext(s.timeout)
	defer cancel()
	made, err := s.ask(ctx, dir, path)
	if err != nil {
		return err
	}
	if s.output == "json" {
		return printJSON(s.out, made)
	}
	_, err = fmt.Fprintf(s.out, "%s\n", made.Path)
	fmt.Fprintf(s.errs, "savepoint of checkpoint %d of job %s; start from it with --restore\n", made.Checkpoint, made.Name)
	return err
}

// ask has the process that owns the state directory make the savepoint, or makes it here when there is none. What a process
// does that starts or ends meanwhile is tried a second time.
func (s *savepoints) ask(ctx context.Context, dir, path string) (control.Savepoint, error) {
	for again := true; ; again = false {
		made, err := control.NewClient(dir).Savepoint(ctx, control.SavepointRequest{Job: s.job, Dir: path})
		if !errors.Is(err, control.ErrNobody) {
			return made, err
		}
		made, err = offline(ctx, dir, s.job, path)
		if diag.CodeOf(err) != diag.Conflict || !again {
			return made, err
		}
	}
}

// offline makes a savepoint of the newest committed checkpoint of a job that no process runs.
func offline(ctx context.Context, dir, job, path string) (made control.Savepoint, err error) {
	engine, err := checkpoint.OwnDir(dir) // no engine starts meanwhile
	if err != nil {
		return made, unanswered(err)
	}
	defer engine.Close()
	jobDir, err := findJob(dir, job)
	if err != nil {
		return made, err
	}
	owner, err := checkpoint.OwnDir(jobDir)
	if err != nil {
		return made, unanswered(err)
	}
	defer owner.Close()
	if where, err := checkpoint.ReadStorage(owner.FS(), jobDir); err == nil && where != "" {
		return made, diag.New(diag.Config, diag.Pos{}, "the checkpoints of the job in %q are kept in %s", jobDir, where).
			WithDetail("what is in the directory is a copy that may be older").
			WithHint("run the job and take the savepoint of it meanwhile, or stop it with one: streamsql stop --savepoint")
	}
	store, err := checkpoint.OpenStore(owner, checkpoint.StoreOptions{})
	if err != nil {
		return made, err
	}
	last, confirmed, err := store.Latest(ctx)
	switch {
	case errors.Is(err, checkpoint.ErrNone):
		return made, diag.New(diag.Config, diag.Pos{}, "the job in %q has no checkpoint yet", jobDir).WithHint("run it until its first checkpoint")
	case err != nil:
		return made, err
	case !confirmed:
		// An older one would be a rewind: what this one lists is committed sooner or later.
		return made, diag.New(diag.Conflict, diag.Pos{}, "checkpoint %d in %q lists output that is not committed", last.ID, jobDir).
			WithHint("start the job once more, so that it commits; then take the savepoint, or stop it with one: streamsql stop --savepoint")
	}
	if path == "" {
		path, err = filepath.Abs(filepath.Join(dir, streamsql.SavepointsDir, fmt.Sprintf("savepoint-%.6s-%s", filepath.Base(jobDir), checkpoint.NewLineage()[:12])))
		if err != nil {
			return made, err
		}
	}
	made = control.Savepoint{Path: path, Checkpoint: uint64(last.ID), Job: filepath.Base(jobDir), Name: last.Job.Name}
	return made, store.Savepoint(ctx, last.ID, path)
}

// unanswered says that a process holds the directory and cannot be asked.
func unanswered(err error) error {
	var d *diag.Error
	if errors.As(err, &d) && d.Code == diag.Conflict {
		d.Hint = "that process does not answer at " + control.SocketName + ": it starts, ends or hangs; repeat the command"
	}
	return err
}

// findJob is the directory of a job in a state directory.
func findJob(dir, job string) (string, error) {
	all, _ := filepath.Glob(filepath.Join(dir, "jobs", "*"))
	var found, names []string
	for _, d := range all {
		name := ""
		if cs, err := checkpoint.ReadCheckpoints(vfs.Default, d); err == nil && len(cs) > 0 {
			name = cs[0].Job.Name
		}
		id := filepath.Base(d)
		names = append(names, strings.TrimSpace(id+" "+name))
		if job == "" || job == name || strings.HasPrefix(id, job) {
			found = append(found, d)
		}
	}
	if len(found) == 1 {
		return found[0], nil
	}
	if len(all) == 0 {
		return "", diag.New(diag.Config, diag.Pos{}, "no job has left anything in %q", dir).WithHint("give the directory that the job's --state-dir named")
	}
	what := "which job is not clear"
	if len(found) == 0 {
		what = fmt.Sprintf("there is no job %q", job)
	}
	return "", diag.New(diag.Config, diag.Pos{}, "%s in %q", what, dir).WithDetail("%s", strings.Join(names, "\n")).WithHint("name one with --job")
}

func (s *savepoints) verify(args []string) error {
	var errs []error
	for _, path := range args {
		c, err := checkpoint.ReadSavepoint(vfs.Default, path)
		if err == nil {
			err = checkpoint.VerifyFiles(context.Background(), vfs.Default, path, c)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", path, err))
			continue
		}
		files, bytes := sizes(c)
		if s.output == "json" {
			err = printJSON(s.out, map[string]any{"Path": path, "Checkpoint": c.ID, "Files": files, "Bytes": bytes, "OK": true})
		} else {
			_, err = fmt.Fprintf(s.out, "%s: OK, %d files, %d bytes\n", path, files, bytes)
		}
		if err != nil {
			return err
		}
	}
	return errors.Join(errs...)
}

func (s *savepoints) dispose(args []string) error {
	var errs []error
	for _, path := range args {
		err := checkpoint.Dispose(vfs.Default, path)
		if err == nil && s.output != "json" {
			_, err = fmt.Fprintf(s.out, "%s: removed\n", path)
		}
		if err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// sizes are the number and bytes of the state files of a checkpoint.
func sizes(c *checkpoint.Checkpoint) (files int, bytes int64) {
	for _, sub := range c.Subtasks {
		files += len(sub.Files)
		for _, f := range sub.Files {
			bytes += f.Size
		}
	}
	return files, bytes
}

// listed is a savepoint in a list.
type listed struct {
	Path       string
	Job, Name  string    `json:",omitempty"`
	Checkpoint uint64    `json:",omitempty"`
	Taken      time.Time `json:",omitzero"`
	Bytes      int64
	State      string // "complete", "unfinished" or why it cannot be read
}

func (s *savepoints) list(args []string) error {
	dirs := args
	if len(dirs) == 0 {
		dirs, _ = filepath.Glob(filepath.Join(".streamsql", "*"))
		if s.stateDir != "" {
			dirs = []string{s.stateDir}
		}
	}
	all := []listed{}
	for _, dir := range dirs {
		if _, err := os.Stat(dir); err != nil {
			return diag.New(diag.Config, diag.Pos{}, "no directory %q", dir).WithHint("give a directory with savepoints, or a state directory")
		}
		all = append(all, listSavepoints(dir)...)
	}
	if s.output == "json" {
		return printJSON(s.out, all)
	}
	if len(all) == 0 {
		fmt.Fprintln(s.errs, "no savepoint; streamsql savepoint create takes one")
	}
	for _, l := range all {
		if l.State != "complete" {
			fmt.Fprintf(s.out, "%s\n  %s\n", l.Path, l.State)
			continue
		}
		fmt.Fprintf(s.out, "%s\n  checkpoint %d of %s, %s, %d bytes\n", l.Path, l.Checkpoint, l.Name, l.Taken.UTC().Format(time.DateTime), l.Bytes)
	}
	return nil
}

// listSavepoints finds savepoints: dir itself, those in it, and those of a state directory.
func listSavepoints(dir string) (out []listed) {
	places := []string{dir}
	for _, pattern := range []string{"*", streamsql.SavepointsDir + "/*"} {
		m, _ := filepath.Glob(filepath.Join(dir, filepath.FromSlash(pattern)))
		places = append(places, m...)
	}
	slices.Sort(places)
	for _, p := range slices.Compact(places) {
		if m, _ := filepath.Glob(filepath.Join(p, "chk-*")); len(m) == 0 {
			continue
		}
		l := listed{Path: p, State: "complete"}
		c, err := checkpoint.ReadSavepoint(vfs.Default, p)
		switch {
		case strings.HasSuffix(p, ".partial"):
			l.State = "unfinished: a process ended while it wrote or removed this; streamsql savepoint dispose " + strings.TrimSuffix(p, ".partial") + " removes it"
		case err != nil:
			l.State = err.Error()
		case !c.Savepoint:
			continue // of a job
		default:
			_, l.Bytes = sizes(c)
			l.Job, l.Name, l.Checkpoint, l.Taken = c.Job.ID, c.Job.Name, uint64(c.ID), c.StartedAt
		}
		out = append(out, l)
	}
	return out
}
