// Command gen writes docs/connectors.md from what the connectors and formats declare about themselves, docs/lints.md from the
// rules of streamsql check, and
// docs/sql/support.md from what the planner takes and the tests against Flink say. It imports the root package and what
// that imports; a test compares the files with what it would write.
package main

import (
	"bytes"
	"fmt"
	"io"
	"log"
	"os"
	"path/filepath"
	"strings"

	"github.com/streamsql/streamsql"
	"github.com/streamsql/streamsql/connectors"
	"github.com/streamsql/streamsql/connectors/format"
	"github.com/streamsql/streamsql/connectors/memory"
)

//go:generate go run . ../..

func main() {
	if len(os.Args) != 2 {
		log.Fatal("usage: gen ROOT")
	}
	for file, text := range pages(os.Args[1]) {
		if err := os.WriteFile(filepath.Join(os.Args[1], file), text, 0o644); err != nil {
			log.Fatal(err)
		}
	}
}

// pages are the generated files by their place below the root of the checkout.
func pages(root string) map[string][]byte {
	return map[string][]byte{"docs/connectors.md": page(), "docs/lints.md": lints(), "docs/sql/support.md": support(filepath.Join(root, "tests/flink/testdata"))}
}

const head = `# Connectors and formats

Generated from the code by ` + "`make docs`" + `; do not edit. The options of a table stand in its WITH clause. An option that is not listed
here is refused, with the nearest one that is. Options marked *own* are not Flink's; all others have Flink's names and meaning.

`

// notes are what a connector's list of options cannot say: options that depend on the table's columns.
var notes = map[string]string{
	"datagen": "Each column `<name>` has options of its own, by its type: `fields.<name>.kind` (`random`, or `sequence` with `.start` and\n" +
		"`.end`), `.min`, `.max`, `.length`, `.var-len`, `.max-past`, `.null-rate`; fields of a ROW as `fields.<name>.<field>.…`, elements of an\n" +
		"ARRAY as `fields.<name>.element.…`.\n",
}

func page() []byte {
	var b bytes.Buffer
	b.WriteString(head)
	conns := append(streamsql.DefaultConnectors(io.Discard), *memory.NewBus().Connector())
	b.WriteString("| connector | what | reads | writes |\n|---|---|---|---|\n")
	for _, c := range conns {
		fmt.Fprintf(&b, "| [`%s`](#%s) | %s | %s | %s |\n", c.Name, c.Name, cell(c.Doc), yes(c.NewSource != nil), yes(c.NewSink != nil))
	}
	for _, c := range conns {
		connector(&b, c)
	}
	b.WriteString("\n# Formats\n\nTheir options are written with the format's name before them, as in `'json.ignore-parse-errors'`; with `key.format` and\n`value.format` also with `key.` or `value.` before that.\n")
	for _, f := range format.All() {
		fmt.Fprintf(&b, "\n## %s\n\n%s\n", f.Name, sentence(f.Doc))
		options(&b, f.Options)
	}
	return b.Bytes()
}

func connector(b *bytes.Buffer, c connectors.Connector) {
	fmt.Fprintf(b, "\n## %s\n\n%s", c.Name, sentence(c.Doc))
	if c.NeedsFormat {
		b.WriteString(" Needs a format.")
	}
	if len(c.OptionPrefixes) > 0 {
		fmt.Fprintf(b, " Options that start with `%s` are passed on.", strings.Join(c.OptionPrefixes, "`, `"))
	}
	b.WriteString("\n")
	options(b, c.Options)
	if n := notes[c.Name]; n != "" {
		b.WriteString("\n" + n)
	}
	if len(c.Metadata) == 0 {
		return
	}
	b.WriteString("\n| metadata column | type | can be written | meaning |\n|---|---|---|---|\n")
	for _, m := range c.Metadata {
		fmt.Fprintf(b, "| `%s` | %s | %s | %s |\n", m.Key, cell(m.Type.String()), yes(m.Writable), cell(m.Doc))
	}
}

func options(b *bytes.Buffer, opts []connectors.Option) {
	if len(opts) == 0 {
		b.WriteString("\nNo options.\n")
		return
	}
	b.WriteString("\n| option | default | type | meaning |\n|---|---|---|---|\n")
	for _, o := range opts {
		def := "–"
		switch {
		case o.Required:
			def = "*required*"
		case o.Default != "":
			def = "`" + o.Default + "`"
		}
		typ := o.Type.String()
		if len(o.Values) > 0 {
			typ = "`" + strings.Join(o.Values, "`, `") + "`"
		}
		doc := o.Doc
		if o.Deprecated != "" {
			doc = "deprecated, use `" + o.Deprecated + "`"
		}
		if !o.Flink {
			doc = "*own* " + doc
		}
		fmt.Fprintf(b, "| `%s` | %s | %s | %s |\n", o.Key, def, typ, cell(doc))
	}
}

func cell(s string) string {
	return strings.ReplaceAll(strings.ReplaceAll(s, "|", `\|`), "\n", " ")
}

func yes(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

// sentence is a doc line with a capital and a full stop.
func sentence(s string) string {
	if s == "" {
		return ""
	}
	return strings.ToUpper(s[:1]) + strings.TrimSuffix(s[1:], ".") + "."
}
