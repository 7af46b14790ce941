package postgres

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/cmd/streamsql/netproxy"
	"github.com/streamsql/streamsql/sql/diag"
	"github.com/streamsql/streamsql/sql/types"
	"github.com/streamsql/streamsql/tests/harness"
)

// Goal: a connection that ends without a word, on either side, holds nothing up for ever and repeats no row; a statement that takes
// long is waited for. Method: a real server behind a proxy that loses answers and ends.

const (
	soon     = 300 * time.Millisecond // instead of askAfter
	patience = 4 * time.Minute
)

// behind puts a proxy between the fixture's sinks and the server.
func (f *fixture) behind() *netproxy.Proxy {
	f.t.Helper()
	p, err := netproxy.Start(f.pg.Addr(), netproxy.Postgres)
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() { p.Close() })
	f.table.Options.Set("url", strings.Replace(f.pg.DSN(f.db), f.pg.Addr(), p.Addr(), 1), diag.Pos{})
	return p
}

// hasty is a sink that asks soon.
func (f *fixture) hasty() *tableSink {
	s := f.sink(1)
	s.conf.askAfter = soon
	return s
}

func (f *fixture) disturb(p *netproxy.Proxy, fault netproxy.Fault) *netproxy.Injected {
	f.t.Helper()
	i, err := p.Inject(fault)
	if err != nil {
		f.t.Fatal(err)
	}
	return i
}

// noLocks demands that no session of a sink holds a transaction open.
func (f *fixture) noLocks() {
	f.t.Helper()
	const open = `SELECT pid, state, query FROM pg_stat_activity WHERE datname = current_database() AND application_name LIKE 'streamsql:%' AND xact_start IS NOT NULL`
	for end := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		left := f.rows(open)
		if len(left) == 0 {
			return
		}
		if time.Now().After(end) {
			f.t.Fatalf("transactions are left open: %v", left)
		}
	}
}

func TestLostAnswerToCommit(t *testing.T) {
	for _, c := range []struct{ protocol, request string }{
		{prepared, "COMMIT PREPARED"}, {writeAhead, "COMMIT"}, {writeAhead, "INSERT INTO"}, {writeAhead, "COPY"},
	} {
		for _, how := range []netproxy.Fault{{}, {Cut: true}, {Cut: true, ClientOnly: true}} {
			fault := how
			fault.Kind, fault.Request, fault.Times = netproxy.LoseReply, c.request, 1
			t.Run(fmt.Sprint(c.protocol, " ", fault), func(t *testing.T) {
				t.Parallel()
				f := newFixture(t, harness.SharedPostgres(t), idNameDDL, nil, idName, "sink.commit-protocol", c.protocol)
				p := f.behind()
				s := f.hasty()
				cm := f.committer(s)
				must[any](t)(nil, cm.Abort(context.Background(), nil))
				w := f.open(s, 0)
				must[any](t)(nil, w.Write(context.Background(), idNames(nil, 1, "a", 2, "b")))
				cs := must[[]checkpoint.Committable](t)(w.PreCommit(context.Background(), 1))
				i := f.disturb(p, fault)
				err := cm.Commit(context.Background(), cs)
				if diag.CodeOf(err) != diag.External || errors.Is(err, pgconn.ErrConnClosed) {
					t.Fatalf("the commit without an answer: %v", err)
				}
				if !fault.Cut && !strings.Contains(err.Error(), "the answer to a statement is lost") {
					t.Errorf("the error does not say what happened: %v", err)
				}
				<-i.Done()
				must[any](t)(nil, cm.Commit(context.Background(), cs))
				if got := f.rows(`SELECT id, name FROM out ORDER BY id`); fmt.Sprint(got) != "[1|a 2|b]" {
					t.Errorf("%v", got)
				}
				f.noLocks()
			})
		}
	}
}

func TestLostAnswerToUpsert(t *testing.T) {
	for _, how := range []netproxy.Fault{{}, {Cut: true}, {Cut: true, ClientOnly: true}} {
		for _, request := range []string{"COMMIT", "INSERT INTO", "COPY"} {
			fault := how
			fault.Kind, fault.Request, fault.Times = netproxy.LoseReply, request, 1
			t.Run(fault.String(), func(t *testing.T) {
				t.Parallel()
				f := newFixture(t, harness.SharedPostgres(t), `CREATE TABLE out (id int PRIMARY KEY, name text)`, []string{"id"}, idName, "sink.commit-protocol", upsert)
				p := f.behind()
				w := f.open(f.hasty(), 0)
				i := f.disturb(p, fault)
				must[any](t)(nil, w.Write(context.Background(), idNames([]types.RowKind{types.Insert, types.Insert}, 1, "a", 2, "b")))
				must[[]checkpoint.Committable](t)(w.PreCommit(context.Background(), 1))
				<-i.Done()
				if got := f.rows(`SELECT id, name FROM out ORDER BY id`); fmt.Sprint(got) != "[1|a 2|b]" {
					t.Errorf("%v", got)
				}
				f.noLocks()
			})
		}
	}
}

// The server stops reading in the middle of a COPY that does not fit into the buffers between.
func TestLostDataOfCopy(t *testing.T) {
	f := newFixture(t, harness.SharedPostgres(t), `CREATE TABLE out (id int PRIMARY KEY, name text)`, []string{"id"}, idName, "sink.commit-protocol", upsert)
	p := f.behind()
	w := f.open(f.hasty(), 0)
	i := f.disturb(p, netproxy.Fault{Kind: netproxy.Drop, Direction: netproxy.ToServer, After: 100_000, Times: 1})
	must[any](t)(nil, w.Write(context.Background(), idNames([]types.RowKind{types.Insert, types.Insert}, 1, strings.Repeat("a", 3<<20), 2, "b")))
	must[[]checkpoint.Committable](t)(w.PreCommit(context.Background(), 1))
	<-i.Done()
	if got := f.rows(`SELECT id, length(name) FROM out ORDER BY id`); fmt.Sprint(got) != "[1|3145728 2|1]" {
		t.Errorf("%v", got)
	}
	f.noLocks()
}

// A statement that waits for a lock is asked about again and again, and waited for.
func TestLongStatementIsWaitedFor(t *testing.T) {
	f := newFixture(t, harness.SharedPostgres(t), `CREATE TABLE out (id int PRIMARY KEY, name text)`, []string{"id"}, idName, "sink.commit-protocol", upsert)
	p := f.behind()
	w := f.open(f.hasty(), 0)
	holder := f.pg.Conn(t, f.db)
	for _, sql := range []string{"BEGIN", "LOCK TABLE out"} {
		if _, err := holder.Exec(context.Background(), sql); err != nil {
			t.Fatal(err)
		}
	}
	done := make(chan error, 1)
	_, before := p.Connections()
	go func() {
		err := w.Write(context.Background(), idNames(nil, 1, "a"))
		if err == nil {
			_, err = w.PreCommit(context.Background(), 1)
		}
		done <- err
	}()
	for end := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) { // three times asked
		if _, now := p.Connections(); now >= before+3 {
			break
		}
		select {
		case err := <-done:
			t.Fatalf("the writer did not wait: %v", err)
		default:
		}
		if time.Now().After(end) {
			t.Fatal("nobody asks")
		}
	}
	if got := f.rows(`SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`); fmt.Sprint(got) != "[1]" {
		t.Errorf("%v sessions wait", got)
	}
	if _, err := holder.Exec(context.Background(), "COMMIT"); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if got := f.rows(`SELECT id FROM out`); fmt.Sprint(got) != "[1]" {
		t.Errorf("%v", got)
	}
}

// The server's messages are followed whatever pieces they come in.
func TestMessages(t *testing.T) {
	message := func(kind byte, body string) string {
		return string(kind) + string(binary.BigEndian.AppendUint32(nil, uint32(len(body)+4))) + body
	}
	text := message('R', "12345678") + message('C', "COMMIT\x00") + message('Z', "I") + message('N', "") + message('D', strings.Repeat("Z", 300)) + message('Z', "T")
	var ends []int // where Z ends
	ends = append(ends, strings.Index(text, message('Z', "I"))+6, len(text))
	for size := 1; size < 50; size++ {
		var m messages
		for from := 0; from < len(text); from += size {
			to := min(from+size, len(text))
			want := to == ends[0] || to == ends[1]
			if got := m.scan([]byte(text[from:to])); got != want {
				t.Fatalf("pieces of %d: bytes %d to %d: %v, want %v", size, from, to, got, want)
			}
		}
	}
}

// FuzzMessages: where the server's messages end does not depend on how its bytes come.
func FuzzMessages(f *testing.F) {
	ready := []byte{'Z', 0, 0, 0, 5, 'I'}
	f.Add(append([]byte{'C', 0, 0, 0, 6, 'O', 0}, ready...), uint8(3))
	f.Add([]byte{'Z', 0, 0, 0, 0, 'Z', 0xff, 0xff, 0xff, 0xff}, uint8(1))
	f.Fuzz(func(t *testing.T, in []byte, piece uint8) {
		var whole, pieces messages
		want := whole.scan(in)
		got := false
		for left := in; len(left) > 0; {
			n := min(1+int(piece)%16, len(left))
			got, left = pieces.scan(left[:n]), left[n:]
		}
		if got != want || pieces != whole {
			t.Fatalf("ready %v %+v, in pieces %v %+v", want, whole, got, pieces)
		}
	})
}
