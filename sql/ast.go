package sql

import (
	"strings"

	"github.com/streamsql/streamsql/sql/diag"
)

// Node is any part of a parsed statement that has a place in the script. Nodes are plain data: the parser never keeps
// a reference to one, so the caller owns the tree and may rewrite it.
type Node interface {
	// Position is the first character of the node in the script; unknown (zero) in nodes made by the planner.
	Position() diag.Pos
}

// Place is embedded in every node that is not a list element.
type Place struct {
	Pos diag.Pos
}

// Position returns p.Pos.
func (p Place) Position() diag.Pos { return p.Pos }

// At is the Place of pos, for composite literals.
func At(pos diag.Pos) Place { return Place{Pos: pos} }

// Name is one identifier as the user spelled it, without quotes. Names are case-sensitive, as in Flink.
type Name struct {
	Text string
	Pos  diag.Pos
}

// Path is a dotted name such as catalog.database.table or table.column.field. A path made by the parser is never empty.
type Path []Name

// Position is the place of the first part.
func (p Path) Position() diag.Pos {
	if len(p) == 0 {
		return diag.Pos{}
	}
	return p[0].Pos
}

// Parts are the parts without quotes.
func (p Path) Parts() []string {
	out := make([]string, len(p))
	for i, n := range p {
		out[i] = n.Text
	}
	return out
}

// Last is the last part, "" for an empty path.
func (p Path) Last() string {
	if len(p) == 0 {
		return ""
	}
	return p[len(p)-1].Text
}

// Plain is the parts joined by dots without quotes, for messages.
func (p Path) Plain() string { return strings.Join(p.Parts(), ".") }

// String is the path as SQL: every part quoted with backticks.
func (p Path) String() string {
	parts := p.Parts()
	for i := range parts {
		parts[i] = QuoteIdent(parts[i])
	}
	return strings.Join(parts, ".")
}

// PathOf makes a path without positions.
func PathOf(parts ...string) Path {
	p := make(Path, len(parts))
	for i, s := range parts {
		p[i].Text = s
	}
	return p
}

// QuoteIdent is s as a quoted identifier: `s`.
func QuoteIdent(s string) string { return "`" + strings.ReplaceAll(s, "`", "``") + "`" }

// QuoteString is s as a string literal: 's'. Backslashes are ordinary characters in Flink SQL.
func QuoteString(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }

// Option is one 'key' = 'value' pair of a WITH clause, an OPTIONS hint or SET.
type Option struct {
	Key, Value       string
	KeyPos, ValuePos diag.Pos
}

// Hint is one entry of a /*+ ... */ comment: OPTIONS('k'='v') has Options, STATE_TTL('t'='1d') too, BROADCAST(t) has Args.
type Hint struct {
	Place
	Name    string // upper case
	Options []Option
	Args    []Name
}
