package checkpoint

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/cockroachdb/errors/oserror"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/streamsql/streamsql/sql/diag"
)

// OnDegraded says what a restore does when it can no longer keep exactly once.
type OnDegraded uint8

// The choices. None of them loses rows.
const (
	DegradedFail   OnDegraded = iota // stop, and list what cannot be proven
	DegradedRepeat                   // go back further: output that is visible is written again
)

// String is the value of 'streamsql.on-degraded'.
func (o OnDegraded) String() string { return [...]string{"fail", "at-least-once"}[o] }

// Degradation is a guarantee that was given up because the user had said so, once: which output is there twice or is
// missing since. It is durable before it takes effect, and every later checkpoint and savepoint has it.
type Degradation struct {
	At      time.Time // when it was noted
	Lineage string    // of the job's life that it happened in
	Lost    bool      // rows are missing; else rows are there twice
	// Hand: output was ended by hand, outside of the job. The next start goes back where that is exact, and else says what is
	// lost.
	Hand bool `json:",omitempty"`
	// From and To are checkpoints: output after To, up to From, is there twice, or some of it is missing. To = 0: the job began
	// anew. With Hand, From lists the output, 0 = none at hand does.
	From, To ID
	By       string // what the user said: 'option' = 'value', or a flag
	Why      string // what made it necessary, for people
}

// String is a line for people.
func (d Degradation) String() string {
	var what string
	switch {
	case d.Hand && d.From > 0:
		what = fmt.Sprintf("output that checkpoint %d lists was aborted by hand: the next start goes back where that is exact, else it is lost", d.From)
	case d.Hand:
		what = "output that no checkpoint at hand lists was aborted by hand: if one did, it is lost"
	case d.Lost:
		what = fmt.Sprintf("went on from checkpoint %d without output that was lost", d.From)
	case d.To == 0:
		what = fmt.Sprintf("began anew, behind checkpoint %d: what is read again is written again", d.From)
	default:
		what = fmt.Sprintf("went back from checkpoint %d to %d: output in between was written again", d.From, d.To)
	}
	return fmt.Sprintf("%s %s, as %s allows (%s)", d.At.UTC().Format(time.RFC3339), what, d.By, d.Why)
}

// same tells whether both are of one event, noted twice because a process died in between.
func (d Degradation) same(o Degradation) bool {
	return d.Lineage == o.Lineage && d.Lost == o.Lost && d.Hand == o.Hand && d.From == o.From && d.To == o.To && d.By == o.By &&
		(!d.Hand || d.Why == o.Why) // each thing ended by hand is an event of its own
}

// MergeDegradations are the events of all lists, each once, oldest first.
func MergeDegradations(lists ...[]Degradation) (out []Degradation) {
	for _, l := range lists {
		for _, d := range l {
			if !slices.ContainsFunc(out, d.same) {
				out = append(out, d)
			}
		}
	}
	slices.SortStableFunc(out, func(a, b Degradation) int { return a.At.Compare(b.At) })
	return out
}

// Since are the events of now that are not among those of before.
func Since(before, now []Degradation) (out []Degradation) {
	for _, d := range now {
		if !slices.ContainsFunc(before, d.same) {
			out = append(out, d)
		}
	}
	return out
}

// Recorder is the part of a store that keeps the record of guarantees given up. Without one nothing may be given up.
type Recorder interface {
	// Degrade notes d durably. What was noted already is not noted again.
	Degrade(ctx context.Context, d Degradation) error
	// Degraded are those noted, oldest first.
	Degraded(ctx context.Context) ([]Degradation, error)
}

const degradedName = "degraded"

// degradedRecord is the note of a directory.
type degradedRecord struct {
	Events []Degradation `json:"events"`
}

// Degraded implements Recorder.
func (s *DirStore) Degraded(context.Context) ([]Degradation, error) { return ReadDegraded(s.fs, s.dir) }

// Degrade implements Recorder.
func (s *DirStore) Degrade(ctx context.Context, d Degradation) error {
	if err := s.owner.Check(); err != nil {
		return err
	}
	return noteDegraded(s.fs, s.dir, d)
}

// NoteByHand notes durably, in the directory of a job that does not run, what is about to be given up by hand. The caller holds dir
// (Hold). Where checkpoints count elsewhere, the next owner of the copy takes the note there.
func NoteByHand(fs vfs.FS, dir string, d Degradation) error { return noteDegraded(fs, dir, d) }

// noteDegraded adds d to the note of dir, unless it is there.
func noteDegraded(fs vfs.FS, dir string, d Degradation) error {
	was, err := ReadDegraded(fs, dir)
	if err != nil {
		return err
	}
	now := MergeDegradations(was, []Degradation{d})
	if len(now) == len(was) {
		return nil
	}
	if err := writeRecord(fs, dir, degradedName, degradedName, degradedRecord{now}, nil); err != nil {
		return errorf(diag.External, "cannot note in state directory %q that a guarantee is given up", dir).Wrap(err).
			WithDetail("%s", d).WithHint("check free space and permissions of the state directory")
	}
	return nil
}

// Degraded implements Recorder.
func (s *RemoteStore) Degraded(context.Context) ([]Degradation, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.log.last.Degraded), nil
}

// Degrade implements Recorder: the log has it first, and the directory a copy.
func (s *RemoteStore) Degrade(ctx context.Context, d Degradation) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now := MergeDegradations(s.log.last.Degraded, []Degradation{d}); len(now) > len(s.log.last.Degraded) {
		if err := s.note(ctx, func(e *logEntry) { e.Degraded = now }); err != nil {
			return err
		}
	}
	return s.DirStore.Degrade(ctx, d)
}

// ReadDegraded are the guarantees that the job of dir gave up, oldest first. It reads without owning dir.
func ReadDegraded(fs vfs.FS, dir string) ([]Degradation, error) {
	var r degradedRecord
	if err := readRecord(fs, dir, degradedName, degradedName, &r); err != nil && !oserror.IsNotExist(err) {
		return nil, errorf(diag.External, "cannot read %q of state directory %q: which guarantees were given up", degradedName, dir).Wrap(err).
			WithHint("restore the file from a backup; removing it forgets what is in it")
	}
	return r.Events, nil
}

// named lists committables whose outcome is one of those given, for a Degradation.
func named(cs []Committable, out []Outcome, of ...Outcome) string {
	var parts []string
	for i, c := range cs {
		if slices.Contains(of, out[i]) {
			parts = append(parts, fmt.Sprintf("sink %s, checkpoint %d, subtask %d: %s", c.Sink, c.Checkpoint, c.Subtask, out[i]))
		}
	}
	return strings.Join(parts, "; ")
}
