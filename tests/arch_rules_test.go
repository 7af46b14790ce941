package tests

// Goal: the checkers of arch_test.go catch what they are there for. Method: a small tree that breaks one rule at a time.

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// tree writes files into a temporary folder.
func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		p := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func TestLayerRules(t *testing.T) {
	const list = "# A\n\n```\nlayers:\n 1.1 base/leaf   text\n 1.2 base        text\n 2.1 mid         text\n 2.2 mid/*       text; only from 3\n 2.5 side        text\n 3   .           text\n```\n"
	ls, err := readLayers(list)
	if err != nil {
		t.Fatal(err)
	}
	clean := map[string]string{
		"base/leaf/a.go": "package leaf\nimport \"fmt\"",
		"base/a.go":      "package base\nimport \"m/base/leaf\"",
		"mid/a.go":       "package mid\nimport (\"m/base\"; \"m/base/leaf\")",
		"mid/one/a.go":   "package one\nimport \"m/mid\"",
		"side/a.go":      "package side\nimport \"mother/thing\"",
		"a.go":           "package m\nimport \"m/mid/one\"",
		// Neither tests nor testdata are bound.
		"base/a_test.go":              "package base_test\nimport \"m\"",
		"base/testdata/x/whatever.go": "package x\nimport \"m\"",
	}
	for _, c := range []struct{ name, file, text, want string }{
		{"clean", "", "", ""},
		{"upward", "base/b.go", "package base\nimport \"m/mid\"", "base/b.go (layer 1.2) imports mid (layer 2.1): imports go down only"},
		{"root", "mid/b.go", "package mid\nimport \"m\"", "mid/b.go (layer 2.1) imports . (layer 3): imports go down only"},
		{"sibling", "mid/two/a.go", "package two\nimport \"m/mid/one\"", "mid/two/a.go (layer 2.2) imports mid/one (layer 2.2): imports go down only"},
		{"inside a layer", "base/leaf/b.go", "package leaf\nimport \"m/base\"", "base/leaf/b.go (layer 1.1) imports base (layer 1.2): imports go down only"},
		{"only from", "side/b.go", "package side\nimport \"m/mid/one\"", "side/b.go (layer 2.5) imports mid/one, which only layers from 3 up may"},
		{"unlisted folder", "extra/a.go", "package extra", "extra/a.go: folder extra is not in the layer list"},
		{"unlisted import", "b.go", "package m\nimport \"m/gone\"", "b.go imports gone, which is not in the layer list"},
		{"build tag", "base/b.go", "//go:build plan9\n\npackage base\nimport \"m\"", "base/b.go (layer 1.2) imports . (layer 3): imports go down only"},
	} {
		t.Run(c.name, func(t *testing.T) {
			root := tree(t, clean)
			if c.file != "" {
				if err := os.MkdirAll(filepath.Dir(filepath.Join(root, c.file)), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(filepath.Join(root, c.file), []byte(c.text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			wrong, err := checkLayers(root, "m", ls)
			if got := strings.Join(wrong, "\n"); err != nil || got != c.want {
				t.Errorf("got %q, %v\nwant %q", got, err, c.want)
			}
		})
	}
	wrong, err := checkLayers(tree(t, map[string]string{"base/a.go": "package base"}), "m", ls[1:3])
	if want := []string{"the layer list names mid, which holds no Go file"}; err != nil || !slices.Equal(wrong, want) {
		t.Errorf("stale line: got %q, %v", wrong, err)
	}
	for _, bad := range []string{"no list", "```\nlayers:\n 1 a", "```\nlayers:\n one a\n```", "```\nlayers:\n 1\n```"} {
		if _, err := readLayers(bad); err == nil {
			t.Errorf("readLayers(%q) succeeded", bad)
		}
	}
}

func TestPathRules(t *testing.T) {
	const text = "See [a](../a.go), [gone](b.md#x), [web](https://example.org/x.md), [here](#x), `a.go`, `gone.go`, `sub/x.go:12`, `sub/gone.go`, " +
		"`go test ./sub/x.go ./sub/nope`, `sub/*.go`, `old/x.go`, `application/json`, `github.com/x/y.go`, `sub/<name>.go`, `/etc/x.md`, `sub/x.Type`, `sub/deep/gone.Type`, `neighbour/n.md`.\n\n" +
		"```\ncat sub/not-looked-at.go [x](gone.md)\n```\n"
	root := tree(t, map[string]string{"a.go": "", "sub/x.go": "", "sub/x/y.go": "", "docs/d.md": text, "docs/neighbour/n.md": ""})
	wrong, err := checkPaths(root, "docs/d.md")
	want := []string{
		"docs/d.md links to b.md#x, which does not exist",
		"docs/d.md names sub/gone.go, which does not exist",
		"docs/d.md names sub/nope, which does not exist",
		"docs/d.md names old/x.go, which does not exist",
		"docs/d.md names sub/deep/gone, which does not exist",
	}
	if err != nil || !slices.Equal(wrong, want) {
		t.Errorf("got  %q, %v\nwant %q", wrong, err, want)
	}
}

func TestDeferRule(t *testing.T) {
	root := tree(t, map[string]string{"a.go": `package a

func f(xs []int, g func()) {
	defer g()
	for range xs {
		defer g()
		func() { defer g() }()
		for {
			if len(xs) > 0 {
				defer g()
			}
		}
	}
	go func() { defer g() }()
}
`, "a_test.go": "package a\n\nfunc g() { for { defer g() } }\n"})
	wrong, err := checkDefers(root)
	if want := []string{"a.go:6: a defer in a loop", "a.go:10: a defer in a loop"}; err != nil || !slices.Equal(wrong, want) {
		t.Errorf("%q, %v; want %q", wrong, err, want)
	}
}
