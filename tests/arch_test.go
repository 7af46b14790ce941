package tests

// Goal: ARCHITECTURE.md tells the truth. Method: read its layer list and the imports of every Go file, and look up every
// path that README.md, ARCHITECTURE.md, CONTRIBUTING.md and docs/ name. The checkers themselves are tried on small trees
// that break each rule.

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// layer is a line of ARCHITECTURE.md's list: the folder's number and pattern, and the lowest number that may import it
// when the line says "only from N".
type layer struct {
	number  []int // 4.2 is [4 2]
	pattern string
	from    []int
}

var onlyFrom = regexp.MustCompile(`\bonly from ([0-9.]+)\b`)

// readLayers finds the fenced block of markdown whose first line is "layers:" and parses the lines after it: number,
// folder (path.Match pattern, "." is the root), description.
func readLayers(markdown string) ([]layer, error) {
	_, rest, found := strings.Cut(markdown, "```\nlayers:\n")
	block, _, closed := strings.Cut(rest, "\n```")
	if !found || !closed {
		return nil, errors.New("ARCHITECTURE.md has no fenced block that starts with the line \"layers:\"")
	}
	var ls []layer
	for _, line := range strings.Split(block, "\n") {
		f := strings.Fields(line)
		if len(f) == 0 {
			continue
		}
		if len(f) < 2 {
			return nil, fmt.Errorf("layer line %q: want a number and a folder", line)
		}
		number, err := parseNumber(f[0])
		if err != nil {
			return nil, fmt.Errorf("layer line %q: %w", line, err)
		}
		l := layer{number: number, pattern: f[1]}
		if m := onlyFrom.FindStringSubmatch(line); m != nil {
			if l.from, err = parseNumber(m[1]); err != nil {
				return nil, fmt.Errorf("layer line %q: %w", line, err)
			}
		}
		ls = append(ls, l)
	}
	return ls, nil
}

func parseNumber(s string) ([]int, error) {
	var n []int
	for _, part := range strings.Split(s, ".") {
		i, err := strconv.Atoi(part)
		if err != nil {
			return nil, fmt.Errorf("%q is not a layer number", s)
		}
		n = append(n, i)
	}
	return n, nil
}

// find returns the first line whose pattern matches the folder.
func find(ls []layer, folder string) (layer, bool) {
	i := slices.IndexFunc(ls, func(l layer) bool { ok, _ := path.Match(l.pattern, folder); return ok })
	if i < 0 {
		return layer{}, false
	}
	return ls[i], true
}

// checkLayers returns what is wrong with the imports below root, one line each. Test files may import anything.
func checkLayers(root, module string, ls []layer) ([]string, error) {
	var wrong []string
	listed := map[string]bool{} // patterns that a folder with Go files matched
	err := walkGo(root, func(file string) error {
		folder := path.Dir(file)
		from, ok := find(ls, folder)
		if !ok {
			wrong = append(wrong, fmt.Sprintf("%s: folder %s is not in the layer list", file, folder))
			return nil
		}
		listed[from.pattern] = true
		if strings.HasSuffix(file, "_test.go") {
			return nil
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, file), nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		for _, imp := range parsed.Imports {
			target, _ := strconv.Unquote(imp.Path.Value)
			rel, ours := strings.CutPrefix(target+"/", module+"/")
			if !ours {
				continue
			}
			if rel = strings.TrimSuffix(rel, "/"); rel == "" {
				rel = "."
			}
			to, ok := find(ls, rel)
			switch {
			case !ok:
				wrong = append(wrong, fmt.Sprintf("%s imports %s, which is not in the layer list", file, rel))
			case slices.Compare(to.number, from.number) >= 0:
				wrong = append(wrong, fmt.Sprintf("%s (layer %s) imports %s (layer %s): imports go down only", file, dotted(from.number), rel, dotted(to.number)))
			case slices.Compare(from.number, to.from) < 0:
				wrong = append(wrong, fmt.Sprintf("%s (layer %s) imports %s, which only layers from %s up may", file, dotted(from.number), rel, dotted(to.from)))
			}
		}
		return nil
	})
	for _, l := range ls {
		if !listed[l.pattern] {
			wrong = append(wrong, fmt.Sprintf("the layer list names %s, which holds no Go file", l.pattern))
		}
	}
	return wrong, err
}

func dotted(n []int) string {
	return strings.ReplaceAll(strings.Trim(fmt.Sprint(n), "[]"), " ", ".")
}

// walkGo calls f with the slash path, relative to root, of every Go file that the go tool would look at.
func walkGo(root string, f func(file string) error) error {
	return filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if name := d.Name(); d.IsDir() && p != root && (name == "testdata" || name[0] == '.' || name[0] == '_') {
			return filepath.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(p, ".go") {
			return nil
		}
		rel, err := filepath.Rel(root, p)
		if err != nil {
			return err
		}
		return f(filepath.ToSlash(rel))
	})
}

var (
	codeSpan   = regexp.MustCompile("`([^`\n]+)`")
	linkTarget = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	fenced     = regexp.MustCompile("(?ms)^```.*?^```")
	lineSuffix = regexp.MustCompile(`:\d+(-\d+)?$`)
	selector   = regexp.MustCompile(`\.[A-Z]\w*$`) // `sql/diag.Error`
)

// checkPaths returns the paths named by the markdown file at rel that do not exist. A path is the target of a relative
// link, or a word in a code span outside fenced blocks that has a slash and either starts with a folder or file of the root or ends like a
// source file. Words with placeholders (<, $, {, …) are not looked at; * is a pattern.
func checkPaths(root, rel string) ([]string, error) {
	data, err := os.ReadFile(filepath.Join(root, rel))
	if err != nil {
		return nil, err
	}
	text := fenced.ReplaceAllString(string(data), "")
	var wrong []string
	here := path.Dir(filepath.ToSlash(rel))
	for _, m := range linkTarget.FindAllStringSubmatch(codeSpan.ReplaceAllString(text, ""), -1) {
		target, _, _ := strings.Cut(m[1], "#")
		if target == "" || strings.Contains(target, ":") {
			continue
		}
		if !exists(root, path.Join(here, target)) {
			wrong = append(wrong, fmt.Sprintf("%s links to %s, which does not exist", rel, m[1]))
		}
	}
	for _, m := range codeSpan.FindAllStringSubmatch(text, -1) {
		for _, word := range strings.Fields(m[1]) {
			word = strings.TrimPrefix(strings.TrimRight(word, ".,;:)/"), "./")
			word = selector.ReplaceAllString(lineSuffix.ReplaceAllString(word, ""), "")
			if !strings.Contains(word, "/") || strings.ContainsAny(word, "<>${}…'\"=:|~(") || strings.Contains(word, "...") {
				continue
			}
			first, _, _ := strings.Cut(word, "/")
			if !exists(root, first) && !slices.Contains([]string{".go", ".md", ".slt"}, path.Ext(word)) {
				continue // a MIME type, an import path, a file of the user's
			}
			if first == "" || first == "bin" || strings.Contains(first, ".") && first[0] != '.' {
				continue // an absolute path, what make builds, or a module path such as github.com/…
			}
			if !exists(root, word) && !exists(root, path.Join(here, word)) {
				wrong = append(wrong, fmt.Sprintf("%s names %s, which does not exist", rel, word))
			}
		}
	}
	return wrong, nil
}

func exists(root, pattern string) bool {
	if pattern == "" {
		return false
	}
	found, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(pattern)))
	return err == nil && len(found) > 0
}

// documents returns the markdown files that checkPaths reads.
func documents(root string) ([]string, error) {
	docs := []string{"README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"}
	docs = slices.DeleteFunc(docs, func(d string) bool { return !exists(root, d) })
	err := filepath.WalkDir(filepath.Join(root, "docs"), func(p string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err == nil && strings.HasSuffix(p, ".md") {
			p, err = filepath.Rel(root, p)
			docs = append(docs, p)
		}
		return err
	})
	return docs, err
}

const module = "github.com/streamsql/streamsql"

func TestLayers(t *testing.T) {
	markdown, err := os.ReadFile("../ARCHITECTURE.md")
	if err != nil {
		t.Fatal(err)
	}
	ls, err := readLayers(string(markdown))
	if err != nil {
		t.Fatal(err)
	}
	wrong, err := checkLayers("..", module, ls)
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range wrong {
		t.Error(w)
	}
}

func TestNamedPathsExist(t *testing.T) {
	docs, err := documents("..")
	if err != nil {
		t.Fatal(err)
	}
	for _, doc := range docs {
		wrong, err := checkPaths("..", doc)
		if err != nil {
			t.Fatal(err)
		}
		for _, w := range wrong {
			t.Error(w)
		}
	}
}

// TestEveryFolderHasDoc keeps the rule that a folder says in doc.go what it is and what it may import; a program says it
// in main.go.
func TestEveryFolderHasDoc(t *testing.T) {
	has := map[string]bool{}
	err := walkGo("..", func(file string) error {
		folder := path.Dir(file)
		has[folder] = has[folder] || path.Base(file) == "doc.go" || path.Base(file) == "main.go"
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for folder, ok := range has {
		if !ok {
			t.Errorf("%s has no doc.go", folder)
		}
	}
}

// deferLoops are loops with a defer that runs at most once.
var deferLoops = []string{"connectors/kafka/txn.go"}

// TestNoDeferInLoops: what is deferred in a loop waits for the end of the function, which for a loop that runs as long as its
// job never comes.
func TestNoDeferInLoops(t *testing.T) {
	wrong, err := checkDefers("..")
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range wrong {
		if file, _, _ := strings.Cut(w, ":"); !slices.Contains(deferLoops, file) {
			t.Error(w)
		}
	}
}

// checkDefers returns the defers in loops of files that are no tests, as file:line.
func checkDefers(root string) (wrong []string, err error) {
	err = walkGo(root, func(file string) error {
		if strings.HasSuffix(file, "_test.go") {
			return nil
		}
		fset := token.NewFileSet()
		parsed, err := parser.ParseFile(fset, filepath.Join(root, file), nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		var look func(n ast.Node, inLoop bool)
		look = func(n ast.Node, inLoop bool) {
			ast.Inspect(n, func(c ast.Node) bool {
				switch c := c.(type) {
				case *ast.FuncLit:
					look(c.Body, false)
					return false
				case *ast.ForStmt:
					look(c.Body, true)
					return false
				case *ast.RangeStmt:
					look(c.Body, true)
					return false
				case *ast.DeferStmt:
					if inLoop {
						wrong = append(wrong, fmt.Sprintf("%s:%d: a defer in a loop", file, fset.Position(c.Pos()).Line))
					}
				}
				return true
			})
		}
		look(parsed, false)
		return nil
	})
	return wrong, err
}

// TestOperatorFilesArePlaced: the list in the doc.go of the largest folder says what each of its files is about.
func TestOperatorFilesArePlaced(t *testing.T) {
	const folder = "../exec/op"
	doc, err := os.ReadFile(folder + "/doc.go")
	if err != nil {
		t.Fatal(err)
	}
	named := map[string]bool{} // whether a file is there
	for _, m := range regexp.MustCompile(`(?m)^//\t.{20}(.*)$`).FindAllSubmatch(doc, -1) {
		for _, name := range regexp.MustCompile(`[a-z]+_?(?:[,;]|$)`).FindAllString(string(m[1]), -1) {
			named[strings.TrimRight(name, ",;")] = false
		}
	}
	files, err := filepath.Glob(folder + "/*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		base := strings.TrimSuffix(filepath.Base(file), ".go")
		if base == "doc" || strings.HasSuffix(base, "_test") {
			continue
		}
		found := false
		for name := range named {
			if prefix, open := strings.CutSuffix(name, "_"); base == name || open && strings.HasPrefix(base, prefix) {
				named[name], found = true, true
			}
		}
		if !found {
			t.Errorf("exec/op/doc.go does not say what %s is about", filepath.Base(file))
		}
	}
	for name, found := range named {
		if !found {
			t.Errorf("exec/op/doc.go names %s, and there is no such file", name)
		}
	}
}

// maxLines is where a file is too long to be about one thing. A generated file is not read by people.
const maxLines = 600

func TestFilesStaySmall(t *testing.T) {
	err := walkGo("..", func(file string) error {
		data, err := os.ReadFile(filepath.Join("..", file))
		if err != nil || strings.HasSuffix(file, "_test.go") || strings.Contains(string(data), "\n// Code generated ") || strings.HasPrefix(string(data), "// Code generated ") {
			return err
		}
		if n := strings.Count(string(data), "\n"); n > maxLines {
			t.Errorf("%s has %d lines, more than %d: split it by what it defines", file, n, maxLines)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
