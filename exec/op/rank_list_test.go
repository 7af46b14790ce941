package op

import (
	"slices"
	"strings"
	"testing"

	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/exec"
	"github.com/streamsql/streamsql/sql/batch"
)

// TestRankBatch: within a batch only the difference leaves.
func TestRankBatch(t *testing.T) {
	noBefore := func(s RankSpec) RankSpec { s.EmitUpdateBefore = false; return s }
	for _, c := range []struct {
		name string
		spec RankSpec
		in   [][]string
		want [][]string
	}{
		{"in and out again", rankSpec(RankAppend, 1, 2, false), [][]string{{"a 12", "a 19", "b 5", "a 11"}, {"a 10", "a 9", "a 8"}},
			[][]string{{"+I a|11|0|0", "+I a|12|0|0", "+I b|5|0|0"}, {"-D a|11|0|0", "-D a|12|0|0", "+I a|8|0|0", "+I a|9|0|0"}}},
		{"places", rankSpec(RankAppend, 1, 3, true), [][]string{{"a 5", "a 7"}, {"a 6 1", "a 6 2", "a 9"}},
			[][]string{{"+I a|5|0|0|1", "+I a|7|0|0|2"}, {"-U a|7|0|0|2", "+U a|6|1|0|2", "+I a|6|2|0|3"}}},
		{"places without -U", noBefore(rankSpec(RankAppend, 2, 2, true)), [][]string{{"a 5", "a 7"}, {"a 1", "a 6"}},
			[][]string{{"+I a|7|0|0|2"}, {"+U a|5|0|0|2"}}},
		{"the only place", rankSpec(RankAppend, 1, 1, false), [][]string{{"a 5", "a 4"}, {"a 4 1", "a 3", "a 2"}},
			[][]string{{"+I a|4|0|0"}, {"-U a|4|0|0", "+U a|2|0|0"}}},
	} {
		o := openOp(t, NewRank(c.spec), newSubtask(t, 1<<20))
		out := &rowCollector{}
		for k, rows := range c.in {
			b := batch.NewBuilder(rankInput)
			for _, r := range rows {
				rankRow(t, b, r)
			}
			if err := o.Process(0, b.Finish(), out); err != nil {
				t.Fatal(err)
			}
			got := out.take()
			for i := range got {
				got[i] = strings.Replace(got[i], "|", " ", 1)
			}
			if !slices.Equal(got, c.want[k]) {
				t.Errorf("%s, batch %d:\n%q, want\n%q", c.name, k, got, c.want[k])
			}
		}
	}
}

// TestRankAllocations: a Top-N whose lists are full and stay takes no memory, whatever the rows.
func TestRankAllocations(t *testing.T) {
	o := openOp(t, NewRank(rankSpec(RankAppend, 1, 10, true)), newSubtask(t, 64<<20))
	bs := rankBatches(100, false)
	out := &countRows{}
	run := func() {
		if err := o.Process(0, bs[0], out); err != nil {
			t.Fatal(err)
		}
	}
	run()
	if n := testing.AllocsPerRun(20, run); n != 0 {
		t.Errorf("%v allocations for a batch of which nothing comes in", n)
	}
}

// TestRankMiniBatch: the changes of several batches leave together, when there are enough rows, time has passed, a watermark
// or a barrier comes; the result is that of single batches.
func TestRankMiniBatch(t *testing.T) {
	for _, number := range []bool{true, false} {
		spec := rankSpec(RankAppend, 1, 10, number)
		single := openOp(t, NewRank(spec), newSubtask(t, 1<<20))
		spec.Mini = MiniBatch{Size: 3 * batch.Size, Latency: 100}
		s := newSubtask(t, 1<<20)
		o := openOp(t, NewRank(spec), s)
		want, got := map[string]int{}, map[string]int{}
		out := &rowCollector{}
		for i, b := range rankBatches(300, false)[:24] {
			if err := single.Process(0, b, out); err != nil {
				t.Fatal(err)
			}
			fold(t, want, out.take())
			if err := o.Process(0, b, out); err != nil {
				t.Fatal(err)
			}
			if ended := i%8 == 2; ended != (len(out.rows) > 0) {
				t.Fatalf("batch %d: %d rows", i, len(out.rows))
			}
			var err error
			switch i % 8 {
			case 3:
				err = o.OnWatermark(1, out)
			case 5:
				timer := o.(exec.ProcessingTimer)
				if at, ok := timer.NextTimer(); !ok || at != s.now+100 {
					t.Fatalf("the timer is at %d, %v", at, ok)
				}
				err = timer.OnTimer(s.now+100, out)
			case 7:
				_, err = o.OnBarrier(checkpoint.Barrier{}, out)
			case 2:
			default:
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			fold(t, got, out.take())
			if w, g := sorted(want), sorted(got); !slices.Equal(w, g) {
				t.Fatalf("number %v, after batch %d there are %d rows, want %d", number, i, len(g), len(w))
			}
			if _, ok := o.(exec.ProcessingTimer).NextTimer(); ok {
				t.Fatal("a timer is left")
			}
		}
	}
}
