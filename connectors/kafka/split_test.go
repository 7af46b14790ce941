package kafka

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/connectors"
	"github.com/streamsql/streamsql/sql/diag"
)

// With 'sink.transaction.max-bytes' the rows of a checkpoint are in several transactions: all are listed, shown as open, invisible
// before the commit and visible after, each row once and in the order it was written. Where no id can be spared the last one grows.
func TestSplitTransactions(t *testing.T) {
	everywhere(t, func(t *testing.T, e *env) {
		topic := e.topic(t, 1)
		const slots = 7
		s := openSink(t, e.table(topic, idCols, splitOption, "64b", slotsOption, strconv.Itoa(slots)), "s", 2, job(topic))
		c := committerOf(t, s)
		must(t, c.Abort(testCtx(t), nil))
		ws := openWriters(t, s)
		next := 0
		write := func(w int, n int) {
			t.Helper()
			must(t, ws[w].Write(testCtx(t), ids(next, next+n)))
			next += n
		}
		begun := map[string]bool{}
		for id := checkpoint.ID(1); id <= 6; id++ {
			for range 4 { // of two writers, 10 rows of 9 bytes or more each
				write(0, 10)
				write(1, 10)
			}
			if id == 3 {
				for range 20 { // more than there are ids for
					write(1, 10)
				}
			}
			open := s.OpenTransactions()
			first, err := ws[0].PreCommit(testCtx(t), id)
			must(t, err)
			cs, err := ws[1].PreCommit(testCtx(t), id)
			must(t, err)
			if len(first) != 0 || len(cs) < 2 || len(cs) > 3 || len(open) != len(cs) {
				t.Fatalf("checkpoint %d: %d and %d committables on %d ids, %d transactions shown as open", id, len(first), len(cs), slots, len(open))
			}
			for i := range cs {
				ref, err := decodeTxnRef(cs[i].Payload)
				must(t, err)
				identity := ref.id + "/" + strconv.Itoa(int(ref.pid)) + "/" + strconv.Itoa(int(ref.epoch))
				if begun[identity] || ref.ckpt != id {
					t.Fatalf("%s is listed twice, or not for checkpoint %d", ref.String(), id)
				}
				begun[identity] = true
			}
			last := idJSON(next-1, next)[0]
			if slices.Contains(values(e.read(t, topic, true)), last) {
				t.Fatal("rows are visible before the commit")
			}
			must(t, c.Commit(testCtx(t), cs))
			must(t, c.Commit(testCtx(t), cs[1:])) // a part of them again
			for _, w := range ws {
				must(t, w.Committed(testCtx(t), id))
			}
			waitFor(t, func() bool { return inState(s.owner.all()[0], slotRenewing) == 0 }) // else the pool is smaller, and fewer are split
		}
		waitFor(t, func() bool { return len(e.read(t, topic, true)) >= next })
		got := values(e.read(t, topic, true))
		equalUnordered(t, "rows", got, idJSON(0, next))
		at := map[string]int{}
		for i, v := range got {
			at[v] = i
		}
		for from := 0; from < next; from += 10 { // the rows of one batch; batches of two writers may change places
			for i := from + 1; i < from+10; i++ {
				if at[idJSON(i, i+1)[0]] < at[idJSON(i-1, i)[0]] {
					t.Fatalf("row %d is in the log before row %d", i, i-1)
				}
			}
		}
	})
}

// A writer that goes on in another transaction of the same checkpoint has what it wrote before in the log by then.
func TestRowsDoNotOvertakeASplit(t *testing.T) {
	e := fake(t, 2)
	topic := e.topic(t, 1)
	s := openSink(t, e.table(topic, idCols, splitOption, "1b", slotsOption, "13"), "s", 1, job(topic))
	must(t, committerOf(t, s).Abort(testCtx(t), nil))
	w := openWriters(t, s)[0].(*writer)
	for i := range 6 {
		before := w.cur
		must(t, w.Write(testCtx(t), ids(i, i+1)))
		if w.cur == before {
			t.Fatal("the transaction was not split")
		}
		if n := len(e.read(t, topic, false)); n < i {
			t.Fatalf("%d of %d records are in the log when the writer goes on in another transaction", n, i)
		}
	}
}

func TestChaosSplit(t *testing.T) {
	for _, tv := range []int8{1, 2} {
		for _, scope := range []string{"job", "subtask"} {
			name := "split-tv" + strconv.Itoa(int(tv)) + "-" + scope
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				runChaos(t, fake(t, tv), 3, 1500, 2, 0, "sink.transaction-scope", scope, "sink.transactional-id-prefix", name, splitOption, "60b", slotsOption, "8")
			})
		}
	}
	t.Run("kafka", func(t *testing.T) {
		t.Parallel()
		everywhereKafka(t, func(t *testing.T, e *env) {
			runChaos(t, e, 4, 500, 2, 0, "sink.transactional-id-prefix", "split-"+e.topic(t, 1), splitOption, "60b", slotsOption, "8")
		})
	})
}

func TestSplitOptions(t *testing.T) {
	e := &env{addr: "b:1"}
	for _, c := range []struct{ options, want string }{
		{splitOption + "=1mb", ""},
		{splitOption + "=0", "must be more than 0"},
		{splitOption + "=1mb " + slotsOption + "=4", "needs more than 4 transactional ids"},
		{splitOption + "=1mb sink.delivery-guarantee=at-least-once", "has no effect"},
		{splitOption + "=1mb " + commitProtocolOption + "=" + writeAhead, "has no effect"},
	} {
		var kv []string
		for _, o := range strings.Fields(c.options) {
			k, v, _ := strings.Cut(o, "=")
			kv = append(kv, k, v)
		}
		tab := e.table("t", idCols, kv...)
		err := Connector().Check(tab, connectors.UseSink)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.options, err, c.want)
		}
		if err != nil && diag.CodeOf(err) != diag.Config {
			t.Errorf("%s: code %s", c.options, diag.CodeOf(err))
		}
		if err == nil {
			modes, err := Connector().SinkModes(tab)
			must(t, err)
			if m := modes[0]; !strings.Contains(m.Weakness, "one after the other") || m.Commit.Open(1, 1) != 5 {
				t.Errorf("%s: said of it: %q, %d open", c.options, m.Weakness, m.Commit.Open(1, 1))
			}
		}
	}
}
