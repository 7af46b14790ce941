package chaos

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// eachDir calls do for the directories below root, and root itself, each before what is in it. What goes away meanwhile is not
// an error.
func eachDir(root string, do func(dir string) error) error {
	return filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			err = do(path)
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	})
}

// seal keeps everything below root from being made, renamed or removed, as on a volume that was remounted read-only but for
// files that are open.
func seal(root string) error { return eachDir(root, sealDir) }

func unseal(root string) error { return eachDir(root, unsealDir) }

// removeAll removes what runs left, also what a check that was killed had sealed.
func removeAll(root string) error {
	// What cannot be unsealed cannot be removed, and that error names it.
	return errors.Join(unseal(root), os.RemoveAll(root))
}

// cannotSeal is why directories cannot be sealed here, nil = they can: a file system without attributes, a user without the
// right to set them.
func (r *runner) cannotSeal() (err error) {
	dir := filepath.Join(r.dir, "sealed")
	if err := os.Mkdir(dir, 0o777); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, removeAll(dir)) }()
	if err := seal(dir); err != nil {
		return err
	}
	if os.Mkdir(filepath.Join(dir, "child"), 0o777) == nil {
		return fmt.Errorf("%s can be written all the same", dir)
	}
	return nil
}

// lock makes the state directory read-only for a while: under a process at work, or before one starts. The process may wait,
// restart its jobs, or stop and name the directory; it must not lose anything, and never begin anew.
func (u *run) lock(ctx context.Context, f *fault) (done bool, err error) {
	if f.late {
		u.where("killed at %.0f %%, read-only at the next start", 100*f.at)
		before := u.out.Injected
		if done, err = u.killAt(ctx, f, launch{}); done || err != nil {
			return done, err
		}
		u.out.Injected = before // the kill is not what is tried here
	} else {
		u.where("at %.0f %%, for %s", 100*f.at, f.hold)
	}
	var p *process
	if !f.late {
		if p, err = u.launch(ctx, launch{}); err != nil {
			return false, err
		}
		defer p.kill()
		ended, err := u.reached(ctx, p, f)
		if err != nil {
			return false, err
		}
		if ended {
			u.out.Missed++
			return u.over(p)
		}
	}
	dir := u.stateDir()
	defer func() { err = errors.Join(err, unseal(dir)) }()
	if err := seal(dir); err != nil {
		return false, err
	}
	if f.late {
		if p, err = u.launch(ctx, launch{}); err != nil {
			return false, err
		}
		defer p.kill()
	}
	u.out.Injected++
	ended, err := p.awaitEnd(ctx, f.hold)
	if err == nil && !ended && f.late {
		// It cannot have got to work: it has to say so.
		ended, err = p.awaitEnd(ctx, patience)
	}
	if err != nil {
		return false, err
	}
	if ended && !p.finished() && !p.says(dir) {
		u.unclean("it stopped while %s was read-only, without naming it: %s", dir, p.reason())
	}
	if !ended {
		if f.late {
			u.unclean("it started and went on while %s was read-only", dir)
		}
		if err := unseal(dir); err != nil {
			return false, err
		}
		if _, err = p.awaitEnd(ctx, u.r.o.Timeout); err != nil {
			return false, err
		}
	}
	return u.over(p)
}
