package op

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/exec"
	"github.com/streamsql/streamsql/sql/types"
)

// timeScript runs a script of rows "[kind] k@ts:v", "wm ts", "now ms" and "restart" against an operator on timedSchema and
// gives what every step but restart emits, as "kind k@ts:v".
func timeScript(t *testing.T, f func() exec.Operator, steps ...string) []string {
	t.Helper()
	s := newStateHarness(t, 1<<20)
	o := openOp(t, f, s)
	c := &rowCollector{}
	var log []string
	for _, step := range steps {
		var err error
		switch verb, arg, _ := strings.Cut(step, " "); verb {
		case "wm":
			w := int64(math.MaxInt64)
			if arg != "max" {
				if w, err = strconv.ParseInt(arg, 10, 64); err != nil {
					t.Fatal(err)
				}
			}
			err = o.OnWatermark(exec.Watermark(w), c)
		case "now":
			if s.now, err = strconv.ParseInt(arg, 10, 64); err != nil {
				t.Fatal(err)
			}
			if p, ok := o.(exec.ProcessingTimer); ok {
				if at, due := p.NextTimer(); due && at <= s.now {
					err = p.OnTimer(s.now, c)
				}
			}
		case "restart":
			st, err := o.OnBarrier(checkpoint.Barrier{}, c)
			if err != nil {
				t.Fatal(err)
			}
			s.seal()
			s.restart()
			s.restored = nil
			if st != nil {
				s.restored = [][]byte{st}
			}
			o = openOp(t, f, s)
			continue
		default:
			b := newTimedBatch(t)
			for _, r := range strings.Split(step, ", ") {
				timedRow(t, b, r)
			}
			err = o.Process(0, b.Finish(), c)
		}
		if err != nil {
			t.Fatal(err)
		}
		log = append(log, timedText(c.take()))
	}
	return log
}

// timedText writes collected rows of timedSchema, further columns after a slash.
func timedText(rows []string) string {
	var out []string
	for _, r := range rows {
		f := strings.Split(r, "|")
		sec := strings.TrimPrefix(f[2], "1970-01-01 00:00:")
		x, _ := strconv.ParseFloat(sec, 64)
		s := fmt.Sprintf("%s %s@%d:%s", f[0], f[1], int64(x*1000+0.5), f[3])
		if len(f) > 4 {
			s += "/" + strings.Join(f[4:], "/")
		}
		out = append(out, s)
	}
	return strings.Join(out, ", ")
}

func TestDedup(t *testing.T) {
	spec := func(time int, last bool) DedupSpec {
		return DedupSpec{Input: timedSchema, Key: []int{0}, Time: time, Last: last, EmitUpdateBefore: true, EachChange: true}
	}
	net := func(s DedupSpec) DedupSpec { s.EachChange = false; return s }
	noBefore := func(s DedupSpec) DedupSpec { s.EmitUpdateBefore = false; return s }
	ttl := func(s DedupSpec) DedupSpec { s.TTL = 1000; return s }
	for _, c := range []struct {
		name  string
		spec  DedupSpec
		steps []string
		want  []string
	}{
		{"first by processing time", spec(-1, false), []string{"a@5:1, b@4:1, a@1:2", "restart", "a@9:3, c@1:1"},
			[]string{"+I a@5:1, +I b@4:1", "+I c@1:1"}},
		{"last by processing time", spec(-1, true), []string{"a@5:1, a@1:2", "restart", "a@1:2", "a@1:3"},
			[]string{"+I a@5:1, -U a@5:1, +U a@1:2", "", "-U a@1:2, +U a@1:3"}},
		{"last by processing time, TTL shows equal rows", ttl(noBefore(spec(-1, true))), []string{"a@5:1", "a@5:1"},
			[]string{"+I a@5:1", "+U a@5:1"}},
		{"last by event time", spec(1, true), []string{"a@5:1", "a@4:2", "a@5:3", "restart", "a@5:3", "a@6:4, b@1:1"},
			[]string{"+I a@5:1", "", "-U a@5:1, +U a@5:3", "-U a@5:3, +U a@5:3", "-U a@5:3, +U a@6:4, +I b@1:1"}},
		{"last by processing time, of a batch", net(spec(-1, true)), []string{"a@5:1, b@1:1, a@1:2, b@1:1", "restart", "a@1:2, b@1:2, b@1:1", "a@1:3, c@1:1, a@1:4"},
			[]string{"+I a@1:2, +I b@1:1", "", "+I c@1:1, -U a@1:2, +U a@1:4"}},
		{"last by event time, of a batch", net(spec(1, true)), []string{"a@5:1, b@1:1, a@4:2, a@5:3", "a@4:2", "restart", "a@4:1, a@5:4, a@6:4, a@3:1, b@1:1"},
			[]string{"+I b@1:1, +I a@5:3", "", "-U a@5:3, +U a@6:4, -U b@1:1, +U b@1:1"}},
		{"last by event time, of a batch without -U", net(noBefore(spec(1, true))), []string{"a@5:1, b@1:1, a@4:2, a@5:3", "a@4:2, a@5:4, c@1:1"},
			[]string{"+I b@1:1, +I a@5:3", "+U a@5:4, +I c@1:1"}},
		{"last by event time without -U", noBefore(spec(1, true)), []string{"a@5:1, b@1:1, a@4:2, a@5:3", "a@4:2, a@5:4, c@1:1"},
			[]string{"+I a@5:1, +I b@1:1, +U a@5:3", "+U a@5:4, +I c@1:1"}},
		{"first by event time", spec(1, false),
			[]string{"a@5:1, a@3:2, a@3:3, b@4:1", "wm 2", "restart", "a@2:4", "wm 3", "a@3:5, c@2:1, c@3:2", "wm 4", "a@9:6", "wm max"},
			[]string{"", "", "", "+I a@2:4", "", "+I c@3:2, +I b@4:1", "", ""}},
		{"first by event time, due twice at once; a row that waits does not expire", ttl(spec(1, false)),
			[]string{"a@5:1, a@3:2", "now 5000", "wm 9", "a@9:3", "now 9000", "a@9:4", "wm max"},
			[]string{"", "", "+I a@3:2", "", "", "", "+I a@9:4"}},
	} {
		if got := timeScript(t, NewDedup(c.spec), c.steps...); !slices.Equal(got, c.want) {
			t.Errorf("%s:\n%q, want\n%q", c.name, got, c.want)
		}
	}
}

func TestDedupNullTime(t *testing.T) {
	for _, last := range []bool{false, true} {
		o := openOp(t, NewDedup(DedupSpec{Input: timedSchema, Key: []int{0}, Time: 1, Last: last}), newSubtask(t, 1<<20))
		b := newTimedBatch(t)
		timedRow(t, b, "a@-:1")
		if err := o.Process(0, b.Finish(), &rowCollector{}); err == nil || !strings.Contains(err.Error(), `"ts" is NULL`) {
			t.Errorf("last=%v: %v", last, err)
		}
	}
}

// TestWindowRank uses the column ts as the end of the window.
func TestWindowRank(t *testing.T) {
	spec := func(from, to int64, number bool) WindowRankSpec {
		out := slices.Clone(timedSchema.Columns)
		if number {
			out = append(out, types.Column{Name: "rn", Type: types.BigIntType.NotNull()})
		}
		return WindowRankSpec{Input: timedSchema, WindowEnd: 1, Partition: []int{0, 1}, Order: []SortKey{{Col: 2}}, From: from, To: to,
			Number: number, Output: types.NewSchema(out...)}
	}
	lastOfEqual := func(s WindowRankSpec) WindowRankSpec { s.LastOfEqual = true; return s }
	for _, c := range []struct {
		name  string
		spec  WindowRankSpec
		steps []string
		want  []string
	}{
		{"top 2", spec(1, 2, true), []string{"a@20:3, a@10:5, a@10:4", "a@10:6, b@10:1", "wm 8", "restart", "a@10:3", "wm 9", "a@10:1, a@20:9", "wm max"},
			[]string{"", "", "", "", "+I a@10:3/1, +I a@10:4/2, +I b@10:1/1", "", "+I a@20:3/1, +I a@20:9/2"}},
		{"places 2 to 3", spec(2, 3, false), []string{"a@10:5, a@10:4, a@10:3, a@10:2", "wm 9"}, []string{"", "+I a@10:3, +I a@10:4"}},
	} {
		got := timeScript(t, NewWindowRank(c.spec), c.steps...)
		for i := range got { // keys fire in no order
			f := strings.Split(got[i], ", ")
			slices.SortStableFunc(f, func(a, b string) int { return strings.Compare(a[:4], b[:4]) })
			got[i] = strings.Join(f, ", ")
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s:\n%q, want\n%q", c.name, got, c.want)
		}
	}
	// Equal rows: the first to arrive, or the last.
	s := spec(1, 1, false)
	s.Order = nil
	if got := timeScript(t, NewWindowRank(s), "a@10:5, a@10:4", "wm 9"); got[1] != "+I a@10:5" {
		t.Errorf("first of equal: %q", got)
	}
	if got := timeScript(t, NewWindowRank(lastOfEqual(s)), "a@10:5, a@10:4", "wm 9"); got[1] != "+I a@10:4" {
		t.Errorf("last of equal: %q", got)
	}
}

func TestTimeSort(t *testing.T) {
	spec := TimeSortSpec{Input: timedSchema, Time: 1, Keys: []SortKey{{Col: 2, Desc: true}}}
	got := timeScript(t, NewTimeSort(spec), "a@5:1, b@3:1, c@5:2, d@5:1", "wm 4", "restart", "e@4:1, f@3:1", "wm 5", "g@5:9, h@-3:1", "wm max")
	want := []string{"", "+I b@3:1", "", "+I e@4:1, +I c@5:2, +I a@5:1, +I d@5:1", "", ""}
	if !slices.Equal(got, want) {
		t.Errorf("by event time:\n%q, want\n%q", got, want)
	}
	spec.Time = -1
	got = timeScript(t, NewTimeSort(spec), "now 10", "a@5:1, b@3:3", "c@1:2", "now 10", "now 11", "restart", "d@1:1", "now 10", "now 12", "e@1:1", "wm 100", "wm max")
	want = []string{"", "", "", "", "+I b@3:3, +I c@1:2, +I a@5:1", "", "", "+I d@1:1", "", "", "+I e@1:1"}
	if !slices.Equal(got, want) {
		t.Errorf("by processing time:\n%q, want\n%q", got, want)
	}
}
