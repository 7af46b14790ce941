package checkpoint

import (
	"slices"
	"strings"
	"testing"

	"github.com/streamsql/streamsql/sql/diag"
)

// Goal: every operator of a checkpoint and of a plan is judged, and a change is named by field with old and new type.
// Method: one plan with a change each.
func TestCompare(t *testing.T) {
	agg := OperatorInfo{Kind: "aggregate", Name: "GroupAggregate(groupBy=[k])", Keys: []FieldInfo{{"k", "STRING"}},
		Fields: []FieldInfo{{"k", "STRING"}, {"v", "INT"}}, Reads: []OperatorID{"source[in]"}, Through: []string{"Calc(where=[v > 1])"}}
	infos := map[OperatorID]OperatorInfo{"source[in]": {Kind: KindSource, Name: "in"}, "sink[out]": {Kind: KindSink, Name: "out"}, "sink[out]/aggregate": agg}
	made := &Checkpoint{ID: 7, Operators: infos,
		Identities: map[OperatorID]string{"source[in]": "source kafka", "sink[out]": "sink files", "sink[out]/aggregate": "1:a"},
		Subtasks:   []Snapshot{{Subtask: SubtaskID{"sink[out]/aggregate", 0}, Files: []StateFile{{Size: 40}}}}}
	type plan struct {
		identities map[OperatorID]string
		infos      map[OperatorID]OperatorInfo
	}
	with := func(change func(p plan)) plan {
		p := plan{map[OperatorID]string{}, map[OperatorID]OperatorInfo{}}
		for id, s := range made.Identities {
			p.identities[id] = s
		}
		for id, i := range infos {
			p.infos[id] = i
		}
		change(p)
		return p
	}
	changed := func(change func(*OperatorInfo)) plan {
		return with(func(p plan) {
			info := agg
			info.Keys, info.Fields = slices.Clone(info.Keys), slices.Clone(info.Fields)
			change(&info)
			p.identities["sink[out]/aggregate"], p.infos["sink[out]/aggregate"] = "1:b", info
		})
	}
	for _, c := range []struct {
		name  string
		plan  plan
		fits  string // of source, operators and sinks, in order
		lossy bool
		says  []string
	}{
		{"the same", with(func(plan) {}), "match match match", false, nil},
		{"a type", changed(func(i *OperatorInfo) { i.Fields[1].Type = "BIGINT" }), "match changed match", true, []string{"sink[out]/aggregate", "field v was INT, is BIGINT"}},
		{"a column more", changed(func(i *OperatorInfo) { i.Fields = append(i.Fields, FieldInfo{"w", "DATE"}) }), "match changed match", true, []string{"field w is new (DATE)"}},
		{"a column less", changed(func(i *OperatorInfo) { i.Fields = i.Fields[:1] }), "match changed match", true, []string{"field v is gone (was INT)"}},
		{"a key", changed(func(i *OperatorInfo) { i.Keys = append(i.Keys, FieldInfo{"v", "INT"}) }), "match changed match", true, []string{"key was k STRING, is k STRING, v INT"}},
		{"a condition", changed(func(i *OperatorInfo) { i.Through = []string{"Calc(where=[v > 2])"} }), "match changed match", true, []string{"input was Calc(where=[v > 1]), is Calc(where=[v > 2])"}},
		{"what is not known", changed(func(i *OperatorInfo) {}), "match changed match", true, []string{"what decides the content of its state differs"}},
		{"moved", with(func(p plan) {
			delete(p.identities, "sink[out]/aggregate")
			p.identities["sink[out]/join.0/aggregate"], p.infos["sink[out]/join.0/aggregate"] = "1:a", agg
			p.identities["sink[out]/join"] = "1:j"
			p.identities["source[dim]"] = "source kafka"
			p.infos["sink[out]/join"] = OperatorInfo{Kind: "join", Reads: []OperatorID{"sink[out]/join.0/aggregate", "source[dim]"}}
			p.infos["source[dim]"] = OperatorInfo{Kind: KindSource}
		}), "new match fresh moved match", true, []string{"sink[out]/join: not in the checkpoint, would start empty"}},
		{"a statement more", with(func(p plan) {
			p.identities["source[b]"], p.identities["sink[b]"], p.identities["sink[b]/rank"] = "source kafka", "sink files", "1:r"
			p.infos["sink[b]/rank"] = OperatorInfo{Kind: "rank", Reads: []OperatorID{"source[b]"}}
			p.infos["source[b]"], p.infos["sink[b]"] = OperatorInfo{Kind: KindSource}, OperatorInfo{Kind: KindSink}
		}), "new match new match output match", false, nil},
		{"an operator less", with(func(p plan) { delete(p.identities, "sink[out]/aggregate") }), "match dropped match", true, []string{"gone, its state would be dropped"}},
		{"a source less", with(func(p plan) { delete(p.identities, "source[in]") }), "dropped match match", true, []string{"source[in]: gone, its position would be dropped"}},
		{"another connector", with(func(p plan) { p.identities["source[in]"] = "source files" }), "changed match match", true, []string{"connector was kafka, is files"}},
		{"another sink", with(func(p plan) { delete(p.identities, "sink[out]"); p.identities["sink[x]"] = "sink files" }), "match match output output", false, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := Compare(made, c.plan.identities, c.plan.infos)
			var fits []string
			for _, m := range r.Matches {
				fits = append(fits, m.Result)
				if m.Was == "sink[out]/aggregate" && m.Bytes != 40 {
					t.Errorf("%s has %d bytes", m.Was, m.Bytes)
				}
			}
			if got := strings.Join(fits, " "); got != c.fits {
				t.Errorf("fits %s, want %s", got, c.fits)
			}
			err := r.Check(false)
			if (err != nil) != c.lossy || c.lossy && diag.CodeOf(err) != diag.Config {
				t.Fatalf("lossy %v: %v", c.lossy, err)
			}
			for _, s := range c.says {
				if text := diag.Render(err, "", ""); !strings.Contains(text, s) {
					t.Errorf("%s does not say %q", text, s)
				}
			}
			if err := r.Check(true); err != nil {
				t.Errorf("allowed: %v", err)
			}
			was := r.Restored()
			for _, m := range r.Matches {
				if w, other := was[m.Operator]; m.Fit == FitMoved && w != "sink[out]/aggregate" || m.Fit == FitSame && other ||
					m.Operator != "" && m.Fit.Lossy() && (!other || w != "") {
					t.Errorf("%s %s is restored from %q", m.Operator, m.Result, w)
				}
			}
		})
	}
}

// A checkpoint of before manifests described operators is compared by identity alone.
func TestCompareWithoutDescription(t *testing.T) {
	made := &Checkpoint{ID: 1, Identities: map[OperatorID]string{"source[in]": "source kafka", "sink[o]": "sink files", "sink[o]/a": "1:a"}}
	r := Compare(made, map[OperatorID]string{"source[in]": "source kafka", "sink[p]": "sink files", "sink[o]/a": "1:b"}, nil)
	if n := r.Count(FitSame) + r.Count(FitSink) + r.Count(FitChanged); n != len(r.Matches) || r.Count(FitSink) != 2 || r.Exact() {
		t.Fatalf("%+v", r.Matches)
	}
}
