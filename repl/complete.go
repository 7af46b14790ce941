package repl

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"github.com/streamsql/streamsql"
)

// names is what completion chooses from.
type names interface {
	Objects() []streamsql.Object
	Columns(table string) []string
	Functions() []streamsql.Function
	Jobs() []*streamsql.Job
	SettingNames() []string
	SettingValues(key string) []string
	OptionNames(connector string, formats []string) []string
	OptionValues(connector, key string) []string
}

// complete continues the line before the cursor: rest are the missing characters of each candidate, n how many
// characters of the word are there already.
func (s *Shell) complete(line string) (rest []string, n int) {
	return complete(s.Engine, s.buf.String(), line)
}

// complete is Shell.complete for a line after the earlier lines of its statement.
func complete(from names, before, line string) (rest []string, n int) {
	if before == "" {
		if f := strings.TrimLeft(line, " "); strings.HasPrefix(f, `\`) || strings.HasPrefix(f, ".") {
			return completeCommand(from, f)
		}
	}
	text := before + line
	word := line[strings.LastIndexFunc(line, func(r rune) bool {
		return r != '_' && r != '$' && r != '.' && !unicode.IsLetter(r) && !unicode.IsDigit(r)
	})+1:]
	if insideQuotes(text) {
		return completeQuoted(from, text)
	}
	words := identifiers(text[:len(text)-len(word)])
	if i := strings.LastIndexByte(word, '.'); i >= 0 {
		part := word[i+1:]
		return finish(part, from.Columns(resolve(from, identifiers(text), word[:i])))
	}
	last := ""
	if len(words) > 0 {
		last = strings.ToUpper(words[len(words)-1])
	}
	switch last {
	case "FROM", "JOIN", "INTO", "TABLE", "VIEW", "DESCRIBE", "DESC", "UPDATE":
		if last != "FROM" || !slices.Contains([]string{"METADATA", "COLUMNS"}, upper(words, len(words)-2)) {
			return finish(word, objectNames(from))
		}
	}
	if word == "" {
		return nil, 0
	}
	functions, keywords := callNames(from)
	exact := finishing(word, nearColumns(from, words), false)
	calls := finishing(word, functions, true)
	return finished(word, exact, calls, finishing(word, keywords, true), finishing(word, objectNames(from), false))
}

// nearColumns are the columns of the tables that words name; of all tables while none is named.
func nearColumns(from names, words []string) (columns []string) {
	var all []string
	for _, o := range objectNames(from) {
		if slices.Contains(words, o) {
			columns = append(columns, from.Columns(o)...)
		}
		all = append(all, from.Columns(o)...)
	}
	if columns == nil && !slices.ContainsFunc(words, func(w string) bool { return strings.EqualFold(w, "FROM") }) &&
		slices.ContainsFunc(words, func(w string) bool { return strings.EqualFold(w, "SELECT") }) {
		return all
	}
	return columns
}

// callNames are the functions, with the parenthesis their call has, and the keywords that are none.
func callNames(from names) (functions, keywords []string) {
	known := map[string]bool{}
	for _, f := range from.Functions() {
		known[f.Name] = true
		name := f.Name
		if strings.Contains(f.Usage, name+"(") {
			name += "("
		}
		functions = append(functions, name)
	}
	for _, k := range streamsql.Keywords() {
		if !known[k] {
			keywords = append(keywords, k)
		}
	}
	return functions, keywords
}

func upper(words []string, i int) string {
	if i < 0 || i >= len(words) {
		return ""
	}
	return strings.ToUpper(words[i])
}

func objectNames(from names) (out []string) {
	for _, o := range from.Objects() {
		out = append(out, o.Name)
	}
	return out
}

// finish returns what is missing of the candidates that start with word, spelled as they are.
func finish(word string, candidates []string) (rest []string, n int) {
	return finished(word, finishing(word, candidates, false))
}

// finishing is what is missing of the candidates that start with word, sorted: spelled as they are, or, when folded, in
// any case and continued in the case of the word.
func finishing(word string, candidates []string, folded bool) (rest []string) {
	lower := word != "" && strings.ToUpper(word) != word
	for _, c := range candidates {
		switch {
		case !folded && strings.HasPrefix(c, word):
			rest = append(rest, c[len(word):])
		case folded && len(c) >= len(word) && strings.EqualFold(c[:len(word)], word):
			r := strings.ToUpper(c[len(word):])
			if lower {
				r = strings.ToLower(r)
			}
			rest = append(rest, r)
		}
	}
	slices.Sort(rest)
	return rest
}

// finished joins groups of endings, the likeliest first, and ends the only one with a blank.
func finished(word string, groups ...[]string) (rest []string, n int) {
	for _, g := range groups {
		for _, r := range g {
			if !slices.Contains(rest, r) {
				rest = append(rest, r)
			}
		}
	}
	if len(rest) == 1 && !strings.HasSuffix(rest[0], "(") {
		rest[0] += " "
	}
	return rest, len([]rune(word))
}

// identifiers are the words of a text, without what is in quotes and comments.
func identifiers(text string) (out []string) {
	quoted := false
	for i, part := range strings.Split(text, "'") {
		if quoted = i%2 == 1; quoted {
			continue
		}
		out = append(out, strings.FieldsFunc(part, func(r rune) bool {
			return r != '_' && r != '$' && r != '.' && !unicode.IsLetter(r) && !unicode.IsDigit(r)
		})...)
	}
	return out
}

func insideQuotes(text string) bool { return strings.Count(text, "'")%2 == 1 }

// resolve is the table that a name stands for: itself, or the table it is the alias of in "table [AS] alias".
func resolve(from names, words []string, name string) string {
	tables := objectNames(from)
	if slices.Contains(tables, name) {
		return name
	}
	for i, w := range words {
		if !slices.Contains(tables, w) {
			continue
		}
		next := i + 1
		if upper(words, next) == "AS" {
			next++
		}
		if next < len(words) && words[next] == name {
			return w
		}
	}
	return name
}

// completeCommand completes a backslash command or its argument.
func completeCommand(from names, line string) (rest []string, n int) {
	verb, arg, hasArg := strings.Cut(line, " ")
	if !hasArg {
		var all []string
		for _, c := range commands() {
			all = append(all, c.names...)
		}
		return finish(verb, all)
	}
	arg = strings.TrimLeft(arg, " ")
	switch strings.ToLower(verb) {
	case `\d`, `\d+`, ".schema", `\dt`, `\dv`, ".tables", ".views":
		return finish(arg, objectNames(from))
	case `\df`, ".functions":
		var all []string
		for _, f := range from.Functions() {
			all = append(all, f.Name)
		}
		return finished(arg, finishing(arg, all, true))
	case `\stop`, ".stop":
		var ids []string
		for _, j := range from.Jobs() {
			if !j.Status().State.Ended() {
				ids = append(ids, j.ID())
			}
		}
		return finish(arg, ids)
	case `\timing`, ".timer", `\x`, ".expanded":
		return finish(arg, []string{"on", "off"})
	case `\mode`, ".mode":
		return finish(arg, []string{"table", "csv", "json", "markdown", "changelog", "final"})
	case `\set`, ".set":
		if key, value, ok := strings.Cut(arg, " "); ok {
			return finish(strings.TrimLeft(value, " "), from.SettingValues(key))
		}
		return finish(arg, from.SettingNames())
	case `\i`, ".read", `\o`, ".output":
		return completeFile(arg)
	}
	return nil, 0
}

// completeFile completes the path of a file.
func completeFile(arg string) (rest []string, n int) {
	dir, base := filepath.Split(arg)
	entries, err := os.ReadDir(filepath.Clean(dir))
	if err != nil {
		return nil, 0
	}
	for _, e := range entries {
		if name := e.Name(); strings.HasPrefix(name, base) && (base != "" || name[0] != '.') {
			r := name[len(base):]
			if e.IsDir() {
				r += "/"
			}
			rest = append(rest, r)
		}
	}
	return rest, len([]rune(base))
}
