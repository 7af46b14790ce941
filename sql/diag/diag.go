package diag

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Pos is a place in the text the user submitted. Line and Col count from 1 (Col in code points); Offset is the byte
// offset from the start of the text. The zero Pos means "unknown".
type Pos struct {
	Offset, Line, Col int
}

// Known reports whether p is a real place.
func (p Pos) Known() bool { return p.Line > 0 }

// String is "line:col", or "" when the place is unknown.
func (p Pos) String() string {
	if !p.Known() {
		return ""
	}
	return fmt.Sprintf("%d:%d", p.Line, p.Col)
}

// Code classifies an error. It selects the exit code of the command line and whether a restart can help.
type Code string

// The classes. Syntax, Unsupported, Semantic and Config are the user's to fix (exit code 2); the others fail a
// running job (exit code 1).
const (
	Syntax      Code = "syntax"      // the text is not in the dialect
	Unsupported Code = "unsupported" // Flink SQL has it, streamsql refuses it by name
	Semantic    Code = "semantic"    // unknown name, wrong type, query a sink cannot take
	Config      Code = "config"      // option or setting missing, unknown or out of range
	Data        Code = "data"        // a record or a value that cannot be processed
	External    Code = "external"    // a broker, database or disk refused or is unreachable
	Conflict    Code = "conflict"    // another owner: state directory, transactional prefix
	Lost        Code = "lost"        // an outcome that cannot be proven: possible data loss, never retried silently
	Output      Code = "output"      // where the process itself prints takes nothing more: standard output on a full disk, or closed
	Internal    Code = "internal"    // a bug in streamsql
)

// Error is what a user reads. Message says what failed, in lower case without a full stop; Detail why, with the value
// and the limit; Hint an edit that fixes it. Err, if set, is the cause and takes part in errors.Is and errors.As.
type Error struct {
	Code    Code
	Rule    string // code of the lint rule it breaks (package lint), "" for none
	Pos     Pos
	Message string
	Detail  string
	Hint    string
	Err     error
}

// Error is "line:col: message: cause", on one line, without detail and hint.
func (e *Error) Error() string {
	var sb strings.Builder
	if e.Pos.Known() {
		sb.WriteString(e.Pos.String())
		sb.WriteString(": ")
	}
	sb.WriteString(e.Message)
	if e.Err != nil {
		sb.WriteString(": ")
		sb.WriteString(e.Err.Error())
	}
	return sb.String()
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// mostQuoted and mostListed bound, in bytes, a text that a message quotes, and one in a detail or a hint, which hold lists and
// whole statements, too: a user's literal of a megabyte would bury what is wrong with it.
const mostQuoted, mostListed = 500, 8 << 10

// sprintf is fmt.Sprintf with texts shortened to most bytes each; "%s" alone is no quotation, but all there is to say.
func sprintf(most int, format string, args []any) string {
	if format == "%s" {
		most = mostListed
	}
	short := args
	for i, a := range args {
		if s, ok := a.(string); ok && len(s) > most {
			if &short[0] == &args[0] {
				short = slices.Clone(args) // the caller's
			}
			short[i] = Shorten(s, most)
		}
	}
	return fmt.Sprintf(format, short...)
}

// New makes an error of class c at pos with a formatted message. Long texts among args are shortened, here and in WithHint and
// WithDetail.
func New(c Code, pos Pos, format string, args ...any) *Error {
	return &Error{Code: c, Pos: pos, Message: sprintf(mostQuoted, format, args)}
}

// WithHint sets the hint and returns e.
func (e *Error) WithHint(format string, args ...any) *Error {
	e.Hint = sprintf(mostListed, format, args)
	return e
}

// WithDetail sets the detail and returns e.
func (e *Error) WithDetail(format string, args ...any) *Error {
	e.Detail = sprintf(mostListed, format, args)
	return e
}

// WithRule sets the lint rule and returns e.
func (e *Error) WithRule(code string) *Error {
	e.Rule = code
	return e
}

// Wrap sets the cause and returns e.
func (e *Error) Wrap(err error) *Error {
	e.Err = err
	return e
}

// CodeOf returns the class of the outermost *Error in err's chain, Internal when there is none.
func CodeOf(err error) Code {
	var e *Error
	if errors.As(err, &e) {
		return e.Code
	}
	return Internal
}

// At returns err with pos filled in where the outermost *Error has no place yet. An error that only presents itself as
// an *Error (by its method As) is replaced by that. Other errors are returned unchanged.
func At(err error, pos Pos) error {
	var e, again *Error
	if !errors.As(err, &e) || e.Pos.Known() {
		return err
	}
	e.Pos = pos
	if errors.As(err, &again) && again != e {
		return e
	}
	return err
}

// Render draws err for a terminal: "name:line:col: message", the line of src with a caret under the place, then
// detail and hint. name may be empty; src is the text that positions refer to.
func Render(err error, name, src string) string {
	var e *Error
	if !errors.As(err, &e) {
		return err.Error()
	}
	var sb strings.Builder
	if name != "" {
		sb.WriteString(name)
		sb.WriteString(":")
		if !e.Pos.Known() {
			sb.WriteString(" ")
		}
	}
	if e.Pos.Known() {
		sb.WriteString(e.Pos.String())
		sb.WriteString(": ")
	}
	sb.WriteString(e.Message)
	if e.Err != nil {
		sb.WriteString(": ")
		sb.WriteString(e.Err.Error())
	}
	if rule := ruleOf(e); rule != "" {
		sb.WriteString(" [" + rule + "]")
	}
	if line, ok := lineAt(src, e.Pos); ok {
		line, col := excerpt(line, e.Pos.Col-1)
		sb.WriteString("\n  ")
		sb.WriteString(line)
		sb.WriteString("\n  ")
		sb.WriteString(caretPad(line, col))
		sb.WriteString("^")
	}
	if e.Detail != "" {
		sb.WriteString("\n  reason: ")
		sb.WriteString(indent(e.Detail))
	}
	if e.Hint != "" {
		sb.WriteString("\n  hint: ")
		sb.WriteString(indent(e.Hint))
	}
	return sb.String()
}

// ruleOf is the rule of e, or of what it wraps.
func ruleOf(e *Error) string {
	for e.Rule == "" {
		var next *Error
		if !errors.As(e.Err, &next) {
			return ""
		}
		e = next
	}
	return e.Rule
}

func indent(s string) string { return strings.ReplaceAll(s, "\n", "\n    ") }

func lineAt(src string, p Pos) (string, bool) {
	if !p.Known() || src == "" {
		return "", false
	}
	lines := strings.Split(src, "\n")
	if p.Line > len(lines) {
		return "", false
	}
	line := strings.TrimRight(lines[p.Line-1], "\r")
	if p.Line == 1 {
		line = strings.TrimPrefix(line, "\ufeff") // a byte order mark has no column
	}
	return line, true
}

// excerptBefore and excerptAfter bound how many characters of a line are shown on each side of the place.
const excerptBefore, excerptAfter = 200, 200

// excerpt cuts a long line around col, which counts code points from 0, and returns the column in the result. Control
// characters become spaces, so that a binary file cannot drive the terminal.
func excerpt(line string, col int) (string, int) {
	rs := []rune(line)
	col = min(col, len(rs))
	prefix, suffix := "", ""
	if len(rs) > col+excerptAfter {
		rs, suffix = rs[:col+excerptAfter], "…"
	}
	if cut := col - excerptBefore; cut > 0 {
		rs, col, prefix = rs[cut:], excerptBefore+1, "…"
	}
	for i, r := range rs {
		if r != '\t' && !unicode.IsPrint(r) {
			rs[i] = ' '
		}
	}
	return prefix + string(rs) + suffix, col
}

// caretPad keeps tabs so that the caret stands under its column whatever the terminal's tab width.
func caretPad(line string, cols int) string {
	var sb strings.Builder
	for i := 0; i < cols; i++ {
		r, n := utf8.DecodeRuneInString(line)
		if n > 0 && r == '\t' {
			sb.WriteByte('\t')
		} else {
			sb.WriteByte(' ')
		}
		line = line[n:]
	}
	return sb.String()
}

// Shorten returns s for a message: whole, or its first most bytes, fewer where that would cut a character, and "…".
func Shorten(s string, most int) string {
	if len(s) <= most {
		return s
	}
	n := most
	for n > most-utf8.UTFMax && n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + "…"
}

// Nearest returns the candidate closest to name by edit distance (compared ignoring case; two letters in the wrong order
// are one edit), or "" when none is close enough to be a likely misspelling. It serves every "did you mean".
func Nearest(name string, candidates []string) string {
	best, bestD := "", max((len(name)+1)/3, 1)+1
	for _, c := range candidates {
		d := distance(strings.ToLower(name), strings.ToLower(c))
		if d < bestD && d < max(len(name), len(c)) { // names without a common letter are no misspellings of each other
			best, bestD = c, d
		}
	}
	return best
}

func distance(a, b string) int {
	before := make([]int, len(b)+1)
	prev := make([]int, len(b)+1)
	cur := make([]int, len(b)+1)
	for j := range prev {
		prev[j] = j
	}
	for i := 1; i <= len(a); i++ {
		cur[0] = i
		for j := 1; j <= len(b); j++ {
			c := 1
			if a[i-1] == b[j-1] {
				c = 0
			}
			cur[j] = min(prev[j]+1, cur[j-1]+1, prev[j-1]+c)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				cur[j] = min(cur[j], before[j-2]+1)
			}
		}
		before, prev, cur = prev, cur, before
	}
	return prev[len(b)]
}
