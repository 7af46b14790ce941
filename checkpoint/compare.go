package checkpoint

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/streamsql/streamsql/sql/diag"
)

// Fit says what becomes of an operator's part of a checkpoint in a plan.
type Fit uint8

// The fits, the good ones first.
const (
	FitSame    Fit = iota // goes on with what the checkpoint has
	FitMoved              // the same under another id: the plan around it changed
	FitNew                // not in the checkpoint, and neither is what it reads: it starts as in a new job
	FitSink               // a sink that came, went or changed: it keeps nothing in checkpoints
	FitFresh              // not in the checkpoint, but what it reads is: it would miss the rows of before
	FitChanged            // in both, but what decides its content differs
	FitDropped            // in the checkpoint only
)

// String is the fit in reports.
func (f Fit) String() string {
	return [...]string{"match", "moved", "new", "output", "fresh", "changed", "dropped"}[f]
}

// Lossy reports that state, or rows that should be in it, would be lost.
func (f Fit) Lossy() bool { return f >= FitFresh }

// Change is a difference between an operator in a checkpoint and in a plan.
type Change struct {
	What     string // "field x", "key", "definition" or "input"
	Old, New string // "" = not there
}

// String is the change in a sentence.
func (c Change) String() string {
	switch {
	case c.Old == "":
		return fmt.Sprintf("%s is new (%s)", c.What, c.New)
	case c.New == "":
		return fmt.Sprintf("%s is gone (was %s)", c.What, c.Old)
	}
	return fmt.Sprintf("%s was %s, is %s", c.What, c.Old, c.New)
}

// Match is one operator of a comparison.
type Match struct {
	Operator OperatorID `json:",omitempty"` // in the plan, "" when dropped
	Was      OperatorID `json:",omitempty"` // in the checkpoint, "" when it is not there
	Fit      Fit        `json:"-"`
	Result   string     // Fit as text
	Kind     string
	Name     string
	Bytes    int64    // its state in the checkpoint
	Changes  []Change `json:",omitempty"`
}

// Comparison is a checkpoint held against a plan: what would be restored, started anew and dropped.
type Comparison struct {
	ID      ID
	Lineage string
	Matches []Match // sources, operators, sinks; by id
}

// Compare holds checkpoint c against a plan: its identities, which decide, and what is known of its operators. An
// operator whose state has the same content under another id is found by its identity.
func Compare(c *Checkpoint, identities map[OperatorID]string, infos map[OperatorID]OperatorInfo) *Comparison {
	m := &matching{c: c, identities: identities, infos: infos, fits: map[OperatorID]Match{}, taken: map[OperatorID]bool{}}
	m.same()
	m.moved()
	m.rest()
	out := &Comparison{ID: c.ID, Lineage: c.Lineage}
	for _, x := range m.fits {
		out.Matches = append(out.Matches, m.describe(x))
	}
	for id := range c.Identities {
		if !m.taken[id] {
			x := Match{Was: id, Fit: FitDropped}
			if kindOf(c.Identities[id], c.Operators[id]) == KindSink {
				x.Fit = FitSink
			}
			out.Matches = append(out.Matches, m.describe(x))
		}
	}
	rank := map[string]int{KindSource: -1, KindSink: 1}
	slices.SortFunc(out.Matches, func(a, b Match) int {
		return cmp.Or(cmp.Compare(rank[a.Kind], rank[b.Kind]), cmp.Compare(a.Operator, b.Operator), cmp.Compare(a.Was, b.Was))
	})
	return out
}

// matching is a comparison being made.
type matching struct {
	c          *Checkpoint
	identities map[OperatorID]string
	infos      map[OperatorID]OperatorInfo
	fits       map[OperatorID]Match // by operator of the plan
	taken      map[OperatorID]bool  // operators of the checkpoint that have found theirs
}

// kindOf is the kind of an operator, also of a checkpoint that does not say: identities of sources and sinks begin with it.
func kindOf(identity string, info OperatorInfo) string {
	for _, k := range []string{KindSource, KindSink} {
		if info.Kind == k || strings.HasPrefix(identity, k+" ") {
			return k
		}
	}
	return info.Kind
}

func (m *matching) same() {
	for id, is := range m.identities {
		if was, ok := m.c.Identities[id]; ok && was == is {
			m.fits[id] = Match{Operator: id, Was: id, Fit: FitSame}
			m.taken[id] = true
		}
	}
}

// moved pairs what is left by identity. Identities of sources and sinks do not tell tables apart.
func (m *matching) moved() {
	free := map[string][]OperatorID{}
	for _, id := range slices.Sorted(maps.Keys(m.c.Identities)) {
		was := m.c.Identities[id]
		if k := kindOf(was, m.c.Operators[id]); !m.taken[id] && k != KindSource && k != KindSink {
			free[was] = append(free[was], id)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(m.identities)) {
		is := m.identities[id]
		if _, done := m.fits[id]; done || len(free[is]) == 0 {
			continue
		}
		was := free[is][0]
		free[is] = free[is][1:]
		m.fits[id] = Match{Operator: id, Was: was, Fit: FitMoved}
		m.taken[was] = true
	}
}

// rest judges what has found nothing equal.
func (m *matching) rest() {
	for _, id := range slices.Sorted(maps.Keys(m.identities)) {
		if _, done := m.fits[id]; done {
			continue
		}
		x := Match{Operator: id, Fit: FitNew}
		if _, ok := m.c.Identities[id]; ok && !m.taken[id] {
			x.Was, x.Fit = id, FitChanged
			m.taken[id] = true
		}
		switch kindOf(m.identities[id], m.infos[id]) {
		case KindSink:
			x.Fit = FitSink
		case KindSource:
		default:
			if x.Fit == FitNew && m.goesOn(id, map[OperatorID]bool{}) {
				x.Fit = FitFresh
			}
		}
		m.fits[id] = x
	}
}

// goesOn reports that a source below id continues at a position of the checkpoint.
func (m *matching) goesOn(id OperatorID, seen map[OperatorID]bool) bool {
	if seen[id] {
		return false
	}
	seen[id] = true
	if kindOf(m.identities[id], m.infos[id]) == KindSource {
		return m.fits[id].Fit == FitSame && m.fits[id].Was != ""
	}
	return slices.ContainsFunc(m.infos[id].Reads, func(in OperatorID) bool { return m.goesOn(in, seen) })
}

// describe adds what people want to know.
func (m *matching) describe(x Match) Match {
	x.Result = x.Fit.String()
	is, was := m.infos[x.Operator], m.c.Operators[x.Was]
	show, identity := is, m.identities[x.Operator]
	if x.Operator == "" {
		show, identity = was, m.c.Identities[x.Was]
	}
	x.Kind, x.Name = kindOf(identity, show), show.Name
	for _, s := range m.c.Subtasks {
		if x.Was != "" && s.Subtask.Operator == x.Was {
			for _, f := range s.Files {
				x.Bytes += f.Size
			}
		}
	}
	if x.Fit == FitChanged || x.Fit == FitSink && x.Operator != "" && x.Was != "" {
		x.Changes = m.changes(x, is, was)
	}
	return x
}

// changes are the differences that are known. What decides is the identity: there may be none to name.
func (m *matching) changes(x Match, is, was OperatorInfo) (out []Change) {
	if x.Kind == KindSource || x.Kind == KindSink {
		return []Change{{"connector", strings.TrimPrefix(m.c.Identities[x.Was], x.Kind+" "), strings.TrimPrefix(m.identities[x.Operator], x.Kind+" ")}}
	}
	if was.Kind == "" {
		return nil // made before manifests described operators
	}
	if a, b := fieldList(was.Keys), fieldList(is.Keys); a != b {
		out = append(out, Change{"key", cmp.Or(a, "none"), cmp.Or(b, "none")})
	}
	types := map[string]string{}
	for _, f := range is.Fields {
		types[f.Name] = f.Type
	}
	for _, f := range was.Fields {
		if t, ok := types[f.Name]; !ok || t != f.Type {
			out = append(out, Change{"field " + f.Name, f.Type, t})
		}
		delete(types, f.Name)
	}
	for _, f := range is.Fields {
		if _, left := types[f.Name]; left {
			out = append(out, Change{"field " + f.Name, "", f.Type})
		}
	}
	if is.Name != was.Name {
		out = append(out, Change{"definition", was.Name, is.Name})
	}
	if a, b := strings.Join(was.Through, " < "), strings.Join(is.Through, " < "); a != b {
		out = append(out, Change{"input", cmp.Or(a, "as read"), cmp.Or(b, "as read")})
	}
	for _, in := range is.Reads {
		if f := m.fits[in].Fit; f == FitChanged || f == FitFresh {
			out = append(out, Change{"input " + string(in), "of another content", "what this report says of it"})
		}
	}
	return out
}

func fieldList(fs []FieldInfo) string {
	s := make([]string, len(fs))
	for i, f := range fs {
		s[i] = f.Name + " " + f.Type
	}
	return strings.Join(s, ", ")
}

// Exact reports that the plan is the one that made the checkpoint, as far as a restore is concerned.
func (r *Comparison) Exact() bool {
	return !slices.ContainsFunc(r.Matches, func(m Match) bool { return m.Fit != FitSame })
}

// Count is the number of operators with a fit.
func (r *Comparison) Count(f Fit) (n int) {
	for _, m := range r.Matches {
		if m.Fit == f {
			n++
		}
	}
	return n
}

// Restored maps operators of the plan to those of the checkpoint whose state they go on with. Operators that are not in
// the comparison keep their ids; those mapped to "" start empty.
func (r *Comparison) Restored() map[OperatorID]OperatorID {
	out := map[OperatorID]OperatorID{}
	for _, m := range r.Matches {
		switch {
		case m.Fit == FitMoved:
			out[m.Operator] = m.Was
		case m.Fit.Lossy() && m.Operator != "", m.Fit == FitNew:
			out[m.Operator] = ""
		}
	}
	return out
}

// Check refuses a restore that would lose state, naming every operator that is concerned, unless the user allows it.
func (r *Comparison) Check(allowDropped bool) error {
	if allowDropped {
		return nil
	}
	var lines []string
	for _, m := range r.Matches {
		if m.Fit.Lossy() {
			lines = append(lines, m.String())
		}
	}
	if len(lines) == 0 {
		return nil
	}
	if n := len(lines) - 6; n > 0 {
		lines = append(lines[:6], fmt.Sprintf("and %d more", n))
	}
	return errorf(diag.Config, "checkpoint %d does not fit this statement: state would be lost", r.ID).
		WithDetail("%s", strings.Join(lines, "\n")).
		WithHint("run the statement it was made by; --allow-dropped-state (SET 'execution.state-recovery.ignore-unclaimed-state' = 'true') starts these operators empty and keeps the rest, --restore none starts all of them afresh; streamsql savepoint show PATH job.sql prints the whole comparison")
}

// String is the match in a line.
func (m Match) String() string {
	id := m.Operator
	if id == "" {
		id = m.Was
	}
	name := string(id)
	if m.Name != "" && m.Kind != KindSource && m.Kind != KindSink {
		name += " " + m.Name
	}
	switch m.Fit {
	case FitMoved:
		return fmt.Sprintf("%s: goes on with the state of %s", name, m.Was)
	case FitNew:
		return name + ": new, starts as in a new job"
	case FitSink:
		switch {
		case m.Operator == "":
			return name + ": not written any more"
		case m.Was == "":
			return name + ": new, written from here on"
		}
		return name + ": " + joinChanges(m.Changes)
	case FitFresh:
		return name + ": not in the checkpoint, would start empty although its input goes on at the checkpoint's positions"
	case FitChanged:
		if len(m.Changes) == 0 {
			return name + ": what decides the content of its state differs"
		}
		return name + ": " + joinChanges(m.Changes)
	case FitDropped:
		what := "its state"
		if m.Kind == KindSource {
			what = "its position"
		}
		return name + ": gone, " + what + " would be dropped"
	}
	return name + ": matches"
}

func joinChanges(cs []Change) string {
	s := make([]string, len(cs))
	for i, c := range cs {
		s[i] = c.String()
	}
	return strings.Join(s, "; ")
}
