package chaos

import (
	"bufio"
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/streamsql/streamsql/catalog"
	"github.com/streamsql/streamsql/sql/types"
)

// dirPlace keeps the shadows of a directory: directories below the check's own.
type dirPlace struct {
	r    *runner
	t    *catalog.Table
	mode types.ChangelogMode
}

func (p *dirPlace) path(run string) string {
	return filepath.Join(p.r.dir, "run-"+run, "out-"+p.t.Name)
}

func (p *dirPlace) edits(run string) []edit { return []edit{{"path", p.path(run)}} }

func (p *dirPlace) claim(context.Context) error { return nil } // the directory is new

func (p *dirPlace) create(_ context.Context, run string) error {
	return os.MkdirAll(p.path(run), 0o777)
}

func (p *dirPlace) answers(context.Context, string) error { return nil }

// walk visits the files that belong to the table, or with hidden those that do not.
func (p *dirPlace) walk(run string, hidden bool, visit func(path, rel string) error) error {
	root := p.path(run)
	return filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, err := filepath.Rel(root, path)
		if name := d.Name(); err == nil && (name[0] == '.' || name[0] == '_') == hidden {
			err = visit(path, rel)
		}
		return err
	})
}

// read takes lines as rows, with the directory of their partition.
func (p *dirPlace) read(ctx context.Context, run string) (rows, error) {
	if p.mode != types.AppendOnly {
		return p.r.query(ctx, run, "SELECT * FROM "+quoteName(p.t.Name))
	}
	header, _ := p.t.Options.Get("csv.header")
	out := bagOf()
	err := p.walk(run, false, func(path, rel string) error {
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		defer f.Close()
		lines := bufio.NewScanner(f)
		lines.Buffer(nil, 64<<20)
		dir := ""
		if d := filepath.Dir(rel); d != "." {
			dir = d + ": "
		}
		for first := header == "true"; lines.Scan(); first = false {
			if !first {
				out.bag[dir+lines.Text()]++
			}
		}
		return lines.Err()
	})
	return out, err
}

func (p *dirPlace) residue(_ context.Context, run string) (out []string, err error) {
	err = p.walk(run, true, func(_, rel string) error {
		if filepath.Base(rel)[0] == '.' {
			out = append(out, fmt.Sprintf("table %s: file %s is unfinished", p.t.Name, rel))
		}
		return nil
	})
	return out, err
}

// drop and clean leave the files to the check's directory, which goes as a whole.
func (p *dirPlace) drop(_ context.Context, run string) error { return os.RemoveAll(p.path(run)) }

func (p *dirPlace) clean(context.Context, bool) error { return nil }
