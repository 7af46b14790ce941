package lint

import (
	"encoding/json"
	"errors"
	"strings"

	"github.com/streamsql/streamsql/sql/diag"
)

// Severity is what follows of a finding.
type Severity uint8

// The severities. An Error is refused: `streamsql check` fails, and a job with it does not start. A Warning is told.
const (
	Error Severity = iota
	Warning
)

// String is the word in messages.
func (s Severity) String() string { return [...]string{"error", "warning"}[s] }

// Rule is one thing that is looked for.
type Rule struct {
	Code  string   // "SSQL-E101": E for errors, W for warnings; the first digit is the chapter
	Name  string   // words with hyphens, for people who search
	Title string   // one line: what is wrong
	Why   string   // what happens to rows
	Fix   string   // what to write instead
	Needs []string // the requirements it answers
	Bad   string   // a script with the fault, and no other
	Good  string   // the same without
	Live  bool     // found only by asking the systems: `streamsql check --live`, and every start of a job
}

// Severity is told by the code.
func (r *Rule) Severity() Severity {
	if strings.HasPrefix(r.Code, "SSQL-W") {
		return Warning
	}
	return Error
}

// Find is the rule with the given code; nil when there is none.
func Find(code string) *Rule {
	for i := range Rules {
		if Rules[i].Code == code {
			return &Rules[i]
		}
	}
	return nil
}

// Finding is a rule that a script breaks, at a place.
type Finding struct {
	Code string
	Pos  diag.Pos
	// Table and Option, or Setting, name what to look for when the place is unknown.
	Table, Option, Setting string
	Message                string // what is wrong, in lower case without a full stop
	Detail                 string // why, with values and limits
	Hint                   string // an edit that removes it
}

// Severity is that of the rule.
func (f *Finding) Severity() Severity {
	if r := Find(f.Code); r != nil {
		return r.Severity()
	}
	return Error
}

// Error is the finding as an error of a statement that is refused.
func (f *Finding) Error() *diag.Error {
	return &diag.Error{Code: diag.Config, Rule: f.Code, Pos: f.Pos, Message: f.Message, Detail: f.Detail, Hint: f.Hint}
}

// FromError is the finding that an error names by its rule; fallback is the rule of errors that name none.
func FromError(err error, fallback string) Finding {
	f := Finding{Code: fallback, Message: err.Error()}
	var e *diag.Error
	if !errors.As(err, &e) {
		return f
	}
	f.Pos, f.Message, f.Detail, f.Hint = e.Pos, e.Message, e.Detail, e.Hint
	if e.Err != nil {
		f.Message += ": " + e.Err.Error()
	}
	for at := e; at != nil; {
		if at.Rule != "" {
			f.Code = at.Rule
			break
		}
		var next *diag.Error
		if !errors.As(at.Err, &next) {
			break
		}
		at = next
	}
	return f
}

// Render draws the finding for a terminal, as errors are. name and src are the file and its text.
func (f *Finding) Render(name, src string) string {
	e := f.Error()
	e.Rule = ""
	e.Message = f.Severity().String() + " " + f.Code + ": " + f.Message
	return diag.Render(e, name, src)
}

// MarshalJSON is the finding for programs.
func (f Finding) MarshalJSON() ([]byte, error) {
	out := struct {
		Code     string `json:"code"`
		Severity string `json:"severity"`
		Line     int    `json:"line,omitempty"`
		Column   int    `json:"column,omitempty"`
		Table    string `json:"table,omitempty"`
		Option   string `json:"option,omitempty"`
		Setting  string `json:"setting,omitempty"`
		Message  string `json:"message"`
		Detail   string `json:"detail,omitempty"`
		Hint     string `json:"hint,omitempty"`
	}{f.Code, f.Severity().String(), f.Pos.Line, f.Pos.Col, f.Table, f.Option, f.Setting, f.Message, f.Detail, f.Hint}
	return json.Marshal(out)
}

// Text is the rule for a terminal.
func (r *Rule) Text() string {
	var sb strings.Builder
	sb.WriteString(r.Code + " (" + r.Severity().String() + "): " + r.Title + "\n\n" + r.Why + "\n\nfix: " + r.Fix + "\n")
	if r.Live {
		sb.WriteString("\nfound by: streamsql check --live, and at every start of a job\n")
		return sb.String()
	}
	for _, x := range []struct{ word, script string }{{"bad", r.Bad}, {"good", r.Good}} {
		sb.WriteString("\n" + x.word + ":\n  " + strings.ReplaceAll(strings.TrimSpace(x.script), "\n", "\n  ") + "\n")
	}
	return sb.String()
}
