package checkpoint

import (
	"context"
	"errors"
	"slices"

	"github.com/cockroachdb/errors/oserror"
	"github.com/streamsql/streamsql/sql/diag"
)

// A run can leave things open outside (transactions, files in progress) before it has published any checkpoint. They
// carry its lineage, so the lineage is noted durably before the first writer opens; whoever starts next aborts what
// noted lineages left.

const lineagesName = "lineages"

// lineagesRecord are the lineages that may have something open outside, oldest first.
type lineagesRecord struct {
	Open []string `json:"open"`
}

// Lineages are the noted lineages, oldest first.
func (s *DirStore) Lineages(context.Context) ([]string, error) {
	var r lineagesRecord
	err := readRecord(s.fs, s.dir, lineagesName, "lineages", &r)
	if err != nil && !oserror.IsNotExist(err) {
		return nil, errorf(diag.External, "cannot read which runs may have left output open in state directory %q", s.dir).Wrap(err)
	}
	return r.Open, nil
}

// Begin notes durably that a run under lineage may leave output open from now on.
func (s *DirStore) Begin(ctx context.Context, lineage string) error {
	return s.noteLineages(ctx, func(open []string) []string {
		if slices.Contains(open, lineage) {
			return open
		}
		return append(open, lineage)
	})
}

// End forgets lineages that have nothing open outside any more.
func (s *DirStore) End(ctx context.Context, lineages ...string) error {
	return s.noteLineages(ctx, func(open []string) []string {
		return slices.DeleteFunc(slices.Clone(open), func(l string) bool { return slices.Contains(lineages, l) })
	})
}

func (s *DirStore) noteLineages(ctx context.Context, change func([]string) []string) error {
	open, err := s.Lineages(ctx)
	if err != nil {
		return err
	}
	now := change(open)
	if slices.Equal(now, open) {
		return nil
	}
	if err := s.owner.Check(); err != nil {
		return err
	}
	if err := writeRecord(s.fs, s.dir, lineagesName, "lineages", lineagesRecord{now}, nil); err != nil {
		return errorf(diag.External, "cannot write to state directory %q", s.dir).Wrap(err)
	}
	return nil
}

// Ended reports whether the run that wrote the newest checkpoint has read all its input, committed everything and said
// so. A run whose process died between its last commit and saying so has not ended: resumed, it ends at once.
func (s *DirStore) Ended(ctx context.Context) (bool, error) {
	last, confirmed, err := s.Latest(ctx)
	switch {
	case errors.Is(err, ErrNone) || err == nil && !(last.Final && confirmed):
		return false, nil
	case err != nil:
		return false, err
	}
	open, err := s.Lineages(ctx)
	return err == nil && !slices.Contains(open, last.Lineage), err
}
