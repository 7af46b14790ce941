package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/cockroachdb/errors/oserror"
	"github.com/streamsql/streamsql/sql/diag"
)

// The log of a job in an ObjectStore, below its prefix:
//
//	log/<number>   entries without gaps, each made once (ObjectStore.Create) and never changed
//	latest         an entry at least so new was written; where it is missing, the log is damaged
//	files/<sha256>-<size>-<name>   state files, by content; a name of its own for each upload, so that a removal that
//	               arrives late, or of an owner that was replaced, never meets a file that is needed
//
// An entry says everything that holds after it, so that the newest is all a reader needs. Owning the log is having written
// its newest entry of kind "own": the next entry of an earlier owner finds its number taken, and the store decides that.
// Where its number was taken and has been removed since, a newer entry exists, for an owner removes entries before one that
// it has announced; so an entry counts once a listing made after it shows none that is newer. The store's listings must be
// complete, as S3's are. "latest" decides nothing: an owner that wakes up late may set it back. Nothing depends on clocks.

// logEntry is one step of the log.
type logEntry struct {
	Number uint64 `json:"number"`
	Nonce  string `json:"nonce"` // tells one's own entry, whose answer was lost, from another's
	Kind   string `json:"kind"`  // "own", "checkpoint", "note"
	By     string `json:"by"`    // which owner; a name of its own, since two may take the same fencing number at once
	Owner  ownerRecord

	// What holds from here on. Reserved: ids up to here may be in use.
	Confirmed ID            `json:"confirmed"`
	Discarded []idRange     `json:"discarded,omitempty"`
	Lineages  []string      `json:"lineages,omitempty"`
	Degraded  []Degradation `json:"degraded,omitempty"`
	Reserved  ID            `json:"reserved"`
	// Published are the retained checkpoints, oldest first.
	Published []publishedAt `json:"published,omitempty"`

	// Of kind "checkpoint": the manifest, and the object of each state file by its path.
	Checkpoint *Checkpoint       `json:"checkpoint,omitempty"`
	Objects    map[string]string `json:"objects,omitempty"`
}

// publishedAt is the entry of a checkpoint.
type publishedAt struct {
	ID     ID     `json:"id"`
	Number uint64 `json:"number"`
}

// latestRecord is the object "latest".
type latestRecord struct {
	Number uint64 `json:"number"`
}

const (
	kindOwn        = "own"
	kindCheckpoint = "checkpoint"
	kindNote       = "note"
	latestKey      = "latest"
	logPrefix      = "log/"
	filesPrefix    = "files/"
)

// remoteLog is the log as one owner sees it. Not safe for concurrent use.
type remoteLog struct {
	objects ObjectStore
	prefix  string // ends with '/'
	owner   ownerRecord
	by      string
	last    logEntry // the newest entry known; number 0 = none
	// announced is the number in the hint.
	announced uint64
}

func (l *remoteLog) key(number uint64) string {
	return fmt.Sprintf("%s%s%020d", l.prefix, logPrefix, number)
}

// get reads and decodes a record; oserror.IsNotExist of the error when there is none.
func (l *remoteLog) get(ctx context.Context, key, kind string, v any) error {
	r, err := l.objects.Get(ctx, key)
	if err != nil {
		return err
	}
	data, err := io.ReadAll(io.LimitReader(r, maxRecordBytes))
	if err = errors.Join(err, r.Close()); err != nil {
		return err
	}
	if err := decodeRecord(kind, data, v); err != nil {
		return fmt.Errorf("object %q of %s: %w", key, l.objects, err)
	}
	return nil
}

func (l *remoteLog) entry(ctx context.Context, number uint64) (e logEntry, err error) {
	err = l.get(ctx, l.key(number), "log", &e)
	switch {
	case err != nil:
	case e.Number != number:
		err = fmt.Errorf("object %q of %s %w: it is entry %d", l.key(number), l.objects, errDamaged, e.Number)
	case number > maxNumber || max(e.Reserved, e.Confirmed) > maxNumber || e.Owner.Fence > maxNumber:
		err = fmt.Errorf("object %q of %s %w: no job comes to its numbers", l.key(number), l.objects, errDamaged)
	case e.Checkpoint != nil:
		// A download writes these files.
		if err = e.Checkpoint.checkPaths(); err != nil {
			err = fmt.Errorf("object %q of %s: %w", l.key(number), l.objects, err)
		}
	}
	return e, err
}

// checkpoint reads the entry of a retained checkpoint.
func (l *remoteLog) checkpoint(ctx context.Context, p publishedAt) (e logEntry, err error) {
	if e, err = l.entry(ctx, p.Number); err == nil && (e.Checkpoint == nil || e.Checkpoint.ID != p.ID) {
		err = fmt.Errorf("object %q of %s %w: checkpoint %d is not in it", l.key(p.Number), l.objects, errDamaged, p.ID)
	}
	return e, err
}

// hint is the number of an entry that exists, 0 when none may.
func (l *remoteLog) hint(ctx context.Context) (uint64, error) {
	var r latestRecord
	if err := l.get(ctx, l.prefix+latestKey, "latest", &r); err != nil && !oserror.IsNotExist(err) {
		return 0, err
	}
	return r.Number, nil
}

// refresh reads the newest entry.
func (l *remoteLog) refresh(ctx context.Context) error {
	least, err := l.hint(ctx)
	if err != nil {
		return l.fault("cannot be read", err)
	}
	least = max(least, l.last.Number)
	for before := uint64(0); ; {
		newest, err := l.newest(ctx)
		if err == nil && (newest < least || newest == before && newest > 0) {
			err = fmt.Errorf("log %w: entry %d is missing", errDamaged, max(least, newest))
		}
		if err != nil {
			return l.fault("cannot be read", err)
		}
		if newest == 0 {
			return nil
		}
		e, err := l.entry(ctx, newest)
		switch {
		case oserror.IsNotExist(err):
			before = newest // removed since it was listed, so that there is a newer one
		case err != nil:
			return l.fault("cannot be read", err)
		default:
			l.last = e
			return nil
		}
	}
}

// newest is the greatest number in the log, 0 when it is empty.
func (l *remoteLog) newest(ctx context.Context) (newest uint64, err error) {
	err = l.objects.List(ctx, l.prefix+logPrefix, func(o ObjectInfo) error {
		newest = max(newest, l.numberOf(o.Key))
		return nil
	})
	return newest, err
}

// numberOf is the number of the entry with that key; 0 when it is none.
func (l *remoteLog) numberOf(key string) uint64 {
	n, err := strconv.ParseUint(strings.TrimPrefix(key, l.prefix+logPrefix), 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// append adds an entry: a copy of the newest as change leaves it. A Conflict is final: another process owns the log. After
// another error the entry may have been written; a later append finds out.
func (l *remoteLog) append(ctx context.Context, kind string, change func(*logEntry)) error {
	for {
		e := l.last
		e.Number, e.Nonce, e.Kind, e.By, e.Owner = e.Number+1, NewLineage(), kind, l.by, l.owner
		e.Checkpoint, e.Objects = nil, nil
		change(&e)
		data, err := encodeRecord("log", &e)
		if err != nil {
			return err
		}
		err = l.objects.Create(ctx, l.key(e.Number), data)
		if errors.Is(err, ErrExists) {
			var there logEntry
			if there, err = l.entry(ctx, e.Number); err != nil {
				return l.fault("cannot be read", err)
			}
			if there.By != l.by {
				return l.lost(&there)
			}
			l.last = there // of this owner: its answer was lost
			if there.Nonce != e.Nonce {
				continue
			}
		} else if err != nil {
			return l.fault("cannot be written", err)
		}
		l.last = e
		if kind == kindNote {
			return nil // where it turns out not to be the newest, the next checkpoint does, too
		}
		return l.announce(ctx)
	}
}

// announce notes that the entry just made is the newest, after making sure that it is.
func (l *remoteLog) announce(ctx context.Context) error {
	if err := l.stands(ctx); err != nil {
		return err
	}
	data, err := encodeRecord("latest", latestRecord{Number: l.last.Number})
	if err == nil {
		err = l.objects.Put(ctx, l.prefix+latestKey, strings.NewReader(string(data)), int64(len(data)))
	}
	if err != nil {
		return l.fault("cannot be written", err)
	}
	l.announced = l.last.Number
	return nil
}

// stands is a Conflict when there are entries after the newest that this owner knows. An older owner whose entry took a
// number that was removed since learns of its end here.
func (l *remoteLog) stands(ctx context.Context) error {
	newest, err := l.newest(ctx)
	if err != nil {
		return l.fault("cannot be read", err)
	}
	return l.until(ctx, newest)
}

// until is stands for a listing that was made already.
func (l *remoteLog) until(ctx context.Context, newest uint64) error {
	if newest <= l.last.Number {
		return nil
	}
	there, err := l.entry(ctx, newest)
	if oserror.IsNotExist(err) {
		there = logEntry{Number: newest} // removed since by its owner, which has newer ones
	} else if err != nil {
		return l.fault("cannot be read", err)
	}
	if there.By == l.by {
		return nil // a note of this owner, without an answer
	}
	return l.lost(&there)
}

// own takes the log: from its entry on, every other owner's next entry fails. fence is the number of the local owner; the
// result is one above every number in the log.
func (l *remoteLog) own(ctx context.Context, fence uint64) error {
	for {
		if err := l.refresh(ctx); err != nil {
			return err
		}
		l.owner.Fence = max(fence, l.last.Owner.Fence+1)
		err := l.append(ctx, kindOwn, func(*logEntry) {})
		if diag.CodeOf(err) != diag.Conflict {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
}

func (l *remoteLog) fault(what string, err error) error {
	if errors.Is(err, errDamaged) {
		return errorf(diag.Lost, "checkpoint storage %s is damaged", l.objects).Wrap(err).
			WithDetail("what it says of committed output is unknown, so that resuming from something older could repeat it").
			WithHint("bring the object back from a version or a backup, or start from a savepoint with another 'execution.checkpointing.dir'")
	}
	if diag.CodeOf(err) != diag.Internal {
		return err
	}
	return errorf(diag.External, "checkpoint storage %s %s", l.objects, what).Wrap(err).
		WithHint("check that it can be reached, and the credentials: reading, writing, listing and removing objects")
}

// lost is the error of an owner that another has replaced; by is its entry, without an owner when it is gone.
func (l *remoteLog) lost(by *logEntry) error {
	err := errorf(diag.Conflict, "the checkpoints in %s were taken over", l.objects).
		WithHint("one process at a time runs a job; this one has stopped writing")
	if by.By == "" {
		return err
	}
	return err.WithDetail("by process %d on %s since %s; its fencing number is %d, ours %d",
		by.Owner.PID, by.Owner.Host, by.Owner.Since.UTC().Format(time.RFC3339), by.Owner.Fence, l.owner.Fence)
}
