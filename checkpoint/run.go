package checkpoint

import (
	"fmt"
	"maps"
	"sync"

	"github.com/cockroachdb/errors/oserror"
	"github.com/streamsql/streamsql/sql/diag"
)

// Run is a durable note of a run of several jobs, such as those of a file, in the state directory they share: it tells jobs
// that came to their end in this run from those that did so in an earlier one. Executing the statement of the latter is a new
// run of the job. Of the former it would write everything twice, when all that happened is that a process was killed while it
// had other jobs to run.
type Run struct {
	owner *Owner
	mu    sync.Mutex
	rec   runRecord
	other map[string]string // Before of an unfinished run with another key, which is given up for this one
	times map[string]int    // how often a job was begun in this process
}

const runName = "run"

type runRecord struct {
	Key string `json:"key"`
	// Before has every job that the run has begun: the lineage under which it had come to its end by then, "" = it had not.
	// A job that the run begins a second time, as two statements of one name are one job, is there again as "<job>#2".
	Before map[string]string `json:"before"`
}

// OpenRun goes on with the run called key, if the directory notes that it has not come to its end, unless all is to begin
// afresh; else it begins one. Nothing is written before a job begins.
func OpenRun(o *Owner, key string, afresh bool) (*Run, error) {
	r := &Run{owner: o, times: map[string]int{}}
	if err := readRecord(o.fs, o.dir, runName, runName, &r.rec); err != nil && !oserror.IsNotExist(err) {
		return nil, errorf(diag.External, "cannot read which jobs have run in state directory %q", o.dir).Wrap(err).
			WithHint("without the file %q in it, jobs that have come to their end start over", runName)
	}
	switch {
	case afresh:
		r.rec = runRecord{Key: key}
	case r.rec.Key != key:
		r.other, r.rec = r.rec.Before, runRecord{Key: key}
	}
	return r, nil
}

// Begun is what the run says about a job that is to be started.
type Begun int

const (
	// BegunFirst is a job that the run has not ended: it is started, or goes on.
	BegunFirst Begun = iota
	// BegunAgain is one that came to its end in an unfinished run with another key, and starts over in this one.
	BegunAgain
	// BegunDone is one that has come to its end in this run, and is not started.
	BegunDone
)

// Begin notes durably that the run begins a job. ended is the lineage under which the job has come to its end, "" when it has not.
func (r *Run) Begin(job, ended string) (Begun, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.times[job]++
	if _, later := r.rec.Before[nth(job, r.times[job]+1)]; later {
		return BegunDone, nil // what stands further down would not have been begun otherwise
	}
	job = nth(job, r.times[job])
	if before, begun := r.rec.Before[job]; begun {
		if ended != "" && ended != before {
			return BegunDone, nil
		}
		return BegunFirst, nil
	}
	next := runRecord{Key: r.rec.Key, Before: maps.Clone(r.rec.Before)}
	if next.Before == nil {
		next.Before = map[string]string{}
	}
	next.Before[job] = ended
	if err := r.owner.Check(); err != nil {
		return BegunFirst, err
	}
	if err := writeRecord(r.owner.fs, r.owner.dir, runName, runName, next, nil); err != nil {
		return BegunFirst, errorf(diag.External, "cannot write to state directory %q", r.owner.dir).Wrap(err)
	}
	r.rec = next
	if before, begun := r.other[job]; begun && ended != "" && ended != before {
		return BegunAgain, nil
	}
	return BegunFirst, nil
}

// nth names the n-th start of a job in a run.
func nth(job string, n int) string {
	if n == 1 {
		return job
	}
	return fmt.Sprintf("%s#%d", job, n)
}

// End forgets the run: all of its jobs have come to their end.
func (r *Run) End() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.rec.Before = nil
	fs, dir := r.owner.fs, r.owner.dir
	if err := r.owner.Check(); err != nil {
		return err // the note is another process's
	}
	err := fs.Remove(fs.PathJoin(dir, runName))
	if oserror.IsNotExist(err) {
		return nil
	}
	if err == nil {
		err = syncDir(fs, dir)
	}
	if err != nil {
		return errorf(diag.External, "cannot write to state directory %q", dir).Wrap(err)
	}
	return nil
}
