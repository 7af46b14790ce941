package planner

import (
	"errors"
	"slices"
	"strings"

	"github.com/streamsql/streamsql/sql"
	"github.com/streamsql/streamsql/sql/diag"
)

// determinism plans a statement with both strategies for non-deterministic updates. Every risk has a place and a notice, and every
// error is the first risk's.
func (h *harness) determinism(input string) (string, error) {
	plan := func(strategy string) (*Plan, error) {
		stmts, err := sql.ParseScript(input)
		if err != nil {
			return nil, err
		}
		conf := h.conf.Clone()
		if _, err := conf.Set(keyNonDeterministic, strategy, diag.Pos{}); err != nil {
			return nil, err
		}
		p, err := h.p.Plan(stmts[0].Stmt, conf, Options{})
		if err == nil {
			err = checkGraph(p.Graph)
		}
		return p, err
	}
	ignored, err := plan("IGNORE")
	if err != nil {
		return "", err
	}
	var sb strings.Builder
	first, n := "", 0
	for _, root := range ignored.roots {
		for _, r := range root.op.(*Sink).Target.Risks {
			n++
			sb.WriteString("not covered: " + r.line() + "\n")
			if first == "" && r.hint != "" {
				first = r.what
			}
			if !r.pos.Known() || !strings.Contains(ignored.Explain(), r.line()) ||
				!slices.ContainsFunc(ignored.Notices, func(s string) bool { return strings.HasPrefix(s, r.pos.String()+": ") && strings.Contains(s, r.what) }) {
				h.t.Errorf("%s: no place, line or notice: %s", input, r.line())
			}
		}
	}
	resolved, err := plan("TRY_RESOLVE")
	if err != nil {
		var e *diag.Error
		if !errors.As(err, &e) || e.Message != first || e.Hint == "" {
			h.t.Errorf("%s: error is not the first risk: %v", input, err)
		}
		return sb.String() + "error: " + diag.Render(err, "", input) + "\n", nil
	}
	if first != "" {
		h.t.Errorf("%s: no error for: %s", input, first)
	}
	kept := strings.Count(resolved.PhysicalText(), "keep=[rows found]")
	if n != kept {
		h.t.Errorf("%s: %d risks, %d lookup joins that keep rows", input, n, kept)
	}
	if len(resolved.roots[0].op.(*Sink).Target.Risks) > 0 {
		h.t.Errorf("%s: risks are left", input)
	}
	for _, l := range strings.Split(resolved.PhysicalText(), "\n") {
		if strings.Contains(l, "keep=[rows found]") {
			sb.WriteString("resolved: " + strings.TrimSpace(l) + "\n")
		}
	}
	if n == 0 {
		sb.WriteString("deterministic\n")
	}
	return sb.String(), nil
}
