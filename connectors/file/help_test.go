package file

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
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

var ctx = context.Background()

// table has the columns a INT, b STRING and, as partition, day STRING if kv says so.
func table(dir string, kv ...string) *catalog.Table {
	t := &catalog.Table{Name: "t", Options: catalog.NewOptions(), Columns: []catalog.Column{
		{Name: "a", Type: types.IntType}, {Name: "b", Type: types.StringType}}}
	t.Options.Set("connector", "filesystem", diag.Pos{Line: 1, Col: 1})
	t.Options.Set("path", dir, diag.Pos{})
	t.Options.Set("format", "csv", diag.Pos{})
	for _, s := range kv {
		k, v, _ := strings.Cut(s, "=")
		t.Options.Set(k, v, diag.Pos{Line: 2, Col: 3})
	}
	return t
}

func partitioned(dir string, kv ...string) *catalog.Table {
	t := table(dir, kv...)
	t.Columns = append(t.Columns, catalog.Column{Name: "day", Type: types.StringType})
	t.Partitions = []string{"day"}
	return t
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o666); err != nil {
		t.Fatal(err)
	}
}

// tree lists all files below dir with their contents, hidden ones too.
func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(p)
		rel, _ := filepath.Rel(dir, p)
		out[rel] = string(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// visible are the contents readers see, joined in name order.
func visible(t *testing.T, dir string) string {
	t.Helper()
	var names []string
	files := tree(t, dir)
	for name := range files {
		if !hidden(filepath.Base(name)) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	var sb strings.Builder
	for _, n := range names {
		sb.WriteString(files[n])
	}
	return sb.String()
}

func sourceOf(t *testing.T, tab *catalog.Table) connectors.Source {
	t.Helper()
	c := Connector()
	if err := c.Check(tab, connectors.UseSource); err != nil {
		t.Fatal(err)
	}
	spec := connectors.SourceSpec{Table: tab, Schema: &types.Schema{}}
	for i, col := range tab.Columns {
		spec.Columns = append(spec.Columns, i)
		spec.Schema.Columns = append(spec.Schema.Columns, types.Column{Name: col.Name, Type: col.Type})
	}
	s, err := c.NewSource(ctx, spec)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func schemaOf(tab *catalog.Table) *types.Schema {
	s := &types.Schema{}
	for _, c := range tab.Columns {
		s.Columns = append(s.Columns, types.Column{Name: c.Name, Type: c.Type})
	}
	return s
}

// step reads once and renders the rows.
func step(t *testing.T, r connectors.Reader, tab *catalog.Table) (string, connectors.Progress, error) {
	t.Helper()
	b := batch.NewBuilder(schemaOf(tab))
	p, err := r.Next(ctx, b)
	rows := b.Finish()
	var out []string
	for i := range rows.N {
		var vs []string
		for _, c := range rows.Cols {
			d := c.Datum(i)
			switch {
			case d.IsNull:
				vs = append(vs, "NULL")
			case c.Type.Phys() == types.PhysI64:
				vs = append(vs, fmt.Sprint(d.I64))
			default:
				vs = append(vs, d.Str)
			}
		}
		out = append(out, rows.Kind(i).String()+strings.Join(vs, ","))
	}
	return strings.Join(out, " "), p, err
}

// readAll reads to the end from the given positions, nil = all splits from their start.
func readAll(t *testing.T, tab *catalog.Table, ps []checkpoint.Position) (string, error) {
	t.Helper()
	s := sourceOf(t, tab)
	if ps == nil {
		names, err := s.Splits(ctx)
		if err != nil {
			return "", err
		}
		for _, n := range names {
			ps = append(ps, checkpoint.Position{Split: n})
		}
	}
	r, err := s.Open(ctx, ps)
	if err != nil {
		return "", err
	}
	defer r.Close()
	var all []string
	for {
		rows, _, err := step(t, r, tab)
		if rows != "" {
			all = append(all, rows)
		}
		if errors.Is(err, io.EOF) {
			return strings.Join(all, " "), nil
		}
		if err != nil {
			return strings.Join(all, " "), err
		}
	}
}

func mustRead(t *testing.T, tab *catalog.Table, want string) {
	t.Helper()
	if got, err := readAll(t, tab, nil); err != nil || got != want {
		t.Fatalf("got %s, %v\nwant %s", got, err, want)
	}
}
