package catalog

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/streamsql/streamsql/sql/diag"
)

// FileName is the catalog's file within its directory.
const FileName = "catalog.sql"

const fileHeader = "-- The permanent tables and views of this state directory, in creation order, as they were written.\n" +
	"-- streamsql replaces this file as a whole; edit it only while no process uses the directory.\n\n"

// New opens the catalog of directory dir, which must exist; "" makes one in memory. The objects of an existing file are
// there only after Load.
func New(dir string) (*Catalog, error) {
	c := &Catalog{permanent: map[string]Object{}, temporary: map[string]Object{}}
	if dir == "" {
		return c, nil
	}
	st, err := os.Stat(dir)
	if err == nil && !st.IsDir() {
		err = fmt.Errorf("%s is not a directory", dir)
	}
	if err != nil {
		return nil, diag.New(diag.External, diag.Pos{}, "cannot open the catalog in %s", dir).Wrap(err)
	}
	c.file = filepath.Join(dir, FileName)
	return c, nil
}

// Load hands the persisted script to replay, which creates its objects through Create; nothing is written meanwhile.
// A damaged or incompatible statement is an error that names the file.
func (c *Catalog) Load(replay func(script string) error) error {
	if c.file == "" {
		return nil
	}
	text, err := os.ReadFile(c.file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return diag.New(diag.External, diag.Pos{}, "cannot read %s", c.file).Wrap(err)
	}
	c.setLoading(true)
	defer c.setLoading(false)
	if err := replay(string(text)); err != nil {
		return diag.New(diag.CodeOf(err), diag.Pos{}, "cannot restore the catalog from %s", c.file).Wrap(err).
			WithHint("repair or remove the statement in that file")
	}
	return nil
}

func (c *Catalog) setLoading(v bool) {
	c.mu.Lock()
	c.loading = v
	c.mu.Unlock()
}

// save replaces the file: the new text is durable before it takes the old one's place. c.mu is held.
func (c *Catalog) save() error {
	if c.file == "" || c.loading {
		return nil
	}
	var sb strings.Builder
	sb.WriteString(fileHeader)
	for _, n := range c.order {
		sb.WriteString(strings.TrimRight(strings.TrimSpace(c.permanent[n].SQL()), ";"))
		// The newline keeps a trailing line comment of the statement from swallowing the semicolon.
		sb.WriteString("\n;\n\n")
	}
	if err := replaceFile(c.file, sb.String()); err != nil {
		return diag.New(diag.External, diag.Pos{}, "cannot write %s", c.file).Wrap(err).
			WithDetail("the object was not created or dropped")
	}
	return nil
}

// replaceFile writes text to path atomically and durably: write, sync, rename, sync the directory.
func replaceFile(path, text string) error {
	tmp := path + ".tmp"
	f, err := os.OpenFile(tmp, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	if err == nil {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = os.Rename(tmp, path)
	}
	if err != nil {
		_ = os.Remove(tmp)
		return err
	}
	d, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}
