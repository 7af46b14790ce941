package postgres

import (
	"context"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/connectors"
	"github.com/streamsql/streamsql/sql/diag"
	"github.com/streamsql/streamsql/tests/harness"
)

// Goal: a job whose bookkeeping was removed while it was down does not take committed rows for rows to be written. Method: the
// rows of a checkpoint are committed, the note of that is lost, and somebody cleans up; the restart asks twice, since a refusal
// that holds only once is none. With the bookkeeping put back it goes on.
func TestForgottenCommits(t *testing.T) {
	pg := harness.SharedPostgres(t)
	ctx := context.Background()
	for name, sql := range map[string][2]string{
		"markers dropped": {`ALTER TABLE ` + commitsTable + ` RENAME TO hidden`, `ALTER TABLE hidden RENAME TO ` + commitsTable},
		"owners dropped":  {`ALTER TABLE ` + ownerTable + ` RENAME TO hidden`, `ALTER TABLE hidden RENAME TO ` + ownerTable},
		"owner deleted": {`CREATE TABLE hidden AS SELECT * FROM ` + ownerTable + `; DELETE FROM ` + ownerTable,
			`INSERT INTO ` + ownerTable + ` SELECT * FROM hidden`},
	} {
		for _, protocol := range []string{prepared, writeAhead} {
			t.Run(name+", "+protocol, func(t *testing.T) {
				f := newFixture(t, pg, idNameDDL, nil, idName, "sink.commit-protocol", protocol)
				s := f.sink(1)
				w, c := f.open(s, 0), f.committer(s)
				if err := w.Write(ctx, idNames(nil, 1, "a")); err != nil {
					t.Fatal(err)
				}
				cs := must[[]checkpoint.Committable](t)(w.PreCommit(ctx, 1))
				if err := c.Commit(ctx, cs); err != nil {
					t.Fatal(err)
				}
				pg.Exec(t, f.db, sql[0])
				for range 2 {
					f.job.Fence++
					if o := must[[]checkpoint.Outcome](t)(f.committer(f.sink(1)).Classify(ctx, cs)); o[0] != checkpoint.OutcomeUnknown {
						t.Fatalf("the outcome is %v, want unknown", o)
					}
				}
				pg.Exec(t, f.db, sql[1])
				f.job.Fence++
				c = f.committer(f.sink(1))
				if o := must[[]checkpoint.Outcome](t)(c.Classify(ctx, cs)); o[0] != checkpoint.OutcomeCommitted {
					t.Fatalf("the outcome is %v, want committed", o)
				}
				if err := c.Commit(ctx, cs); err != nil {
					t.Fatal(err)
				}
				equal(t, f.rows(`SELECT id FROM out`), "1")
			})
		}
	}
}

// twoCommits makes the sink and commits checkpoints 1 and 2, whose note is lost.
func twoCommits(t *testing.T, f *fixture) (all []checkpoint.Committable) {
	t.Helper()
	ctx := context.Background()
	s := f.sink(1)
	w, c := f.open(s, 0), f.committer(s)
	for id := range 2 {
		if err := w.Write(ctx, idNames(nil, id+1, "a")); err != nil {
			t.Fatal(err)
		}
		cs := must[[]checkpoint.Committable](t)(w.PreCommit(ctx, checkpoint.ID(id+1)))
		if err := c.Commit(ctx, cs); err != nil {
			t.Fatal(err)
		}
		all = append(all, cs...)
	}
	return all
}

// classify asks as the next incarnation of the job.
func (f *fixture) classify(cs []checkpoint.Committable) (checkpoint.Committer, []checkpoint.Outcome) {
	f.t.Helper()
	f.job.Fence++
	c := f.committer(f.sink(1))
	return c, must[[]checkpoint.Outcome](f.t)(c.Classify(context.Background(), cs))
}

// Goal: marker rows that somebody deletes before their commit was noted do not make the rows be written again. Method: both
// protocols, one marker or all of them; the restart asks twice. With the marker put back, as the message says, the job goes on,
// and every row is there once.
func TestForgottenMarkers(t *testing.T) {
	pg := harness.SharedPostgres(t)
	ctx := context.Background()
	for _, protocol := range []string{prepared, writeAhead} {
		for remove, want := range map[string][]checkpoint.Outcome{
			`DELETE FROM ` + commitsTable + ` WHERE ckpt = 2`: {checkpoint.OutcomeCommitted, checkpoint.OutcomeUnknown},
			`TRUNCATE ` + commitsTable:                        {checkpoint.OutcomeUnknown, checkpoint.OutcomeUnknown},
		} {
			t.Run(protocol+", "+remove, func(t *testing.T) {
				f := newFixture(t, pg, idNameDDL, nil, idName, "sink.commit-protocol", protocol)
				cs := twoCommits(t, f)
				pg.Exec(t, f.db, remove)
				for range 2 {
					if _, o := f.classify(cs); !slices.Equal(o, want) {
						t.Fatalf("the outcomes are %v, want %v", o, want)
					}
				}
				if protocol == prepared {
					outcomeOfTxn(t, f, cs[1], checkpoint.OutcomeUnknown, "committed; but the marker row that it wrote is not in _streamsql_commits")
					err := f.committer(f.sink(1)).Commit(ctx, cs[1:])
					if diag.CodeOf(err) != diag.Lost || !strings.Contains(diag.Render(err, "", ""), "put the marker back") {
						t.Fatalf("a commit that nothing proves: %v", err)
					}
				}
				s := f.sink(1)
				target := must[*target](t)(s.inspected(ctx))
				for i := range cs {
					if want[i] == checkpoint.OutcomeUnknown {
						p := must[*committable](t)(decodeCommittable(cs[i]))
						pg.Exec(t, f.db, markerStatement(target, s.identity(), cs[i], p))
					}
				}
				c, o := f.classify(cs)
				if !slices.Equal(o, []checkpoint.Outcome{checkpoint.OutcomeCommitted, checkpoint.OutcomeCommitted}) {
					t.Fatalf("with the markers back: %v", o)
				}
				if err := c.Commit(ctx, cs); err != nil {
					t.Fatal(err)
				}
				equal(t, f.rows(`SELECT id FROM out ORDER BY id`), "1", "2")
			})
		}
	}
}

// Goal: what was not committed is not taken for a deleted marker, nor is a number of another server's transaction. Method: a
// transaction that somebody rolled back; a committed one whose note is of another timeline, of a number that the server has yet
// to give (it was put back to an earlier state), and of a release that noted none.
func TestNoMarkerNoCommit(t *testing.T) {
	pg := harness.SharedPostgres(t)
	ctx := context.Background()
	f := newFixture(t, pg, idNameDDL, nil, idName, "sink.commit-protocol", prepared)
	w := f.open(f.sink(1), 0)
	if err := w.Write(ctx, idNames(nil, 1, "a")); err != nil {
		t.Fatal(err)
	}
	cs := must[[]checkpoint.Committable](t)(w.PreCommit(ctx, 1))
	p := must[*committable](t)(decodeCommittable(cs[0]))
	if p.Txn == 0 || p.History == "" {
		t.Fatalf("the committable names no transaction: %+v", p)
	}
	w.Close()
	if _, o := f.classify(cs); o[0] != checkpoint.OutcomeOpen {
		t.Fatalf("prepared: %v", o)
	}
	pg.Exec(t, f.db, `ROLLBACK PREPARED '`+p.GID+`'`)
	if _, o := f.classify(cs); o[0] != checkpoint.OutcomeAborted {
		t.Fatalf("rolled back: %v", o)
	}
	outcomeOfTxn(t, f, cs[0], checkpoint.OutcomeAborted, "")

	f = newFixture(t, pg, idNameDDL, nil, idName, "sink.commit-protocol", prepared)
	cs = twoCommits(t, f)
	pg.Exec(t, f.db, `TRUNCATE `+commitsTable)
	for what, change := range map[string]func(p *committable){
		"another timeline":                 func(p *committable) { p.History = strings.Split(p.History, "/")[0] + "/000000FF" },
		"a number that is yet to be given": func(p *committable) { p.Txn += 1 << 30 },
		"no number":                        func(p *committable) { p.Txn, p.History = 0, "" },
	} {
		p := must[*committable](t)(decodeCommittable(cs[1]))
		change(p)
		c := cs[1]
		c.Payload = p.encode()
		if _, o := f.classify([]checkpoint.Committable{c}); o[0] != checkpoint.OutcomeAborted {
			t.Errorf("%s: %v, want aborted", what, o)
		}
	}
}

// A user without special rights is told the server's history, and a session that may not ask writes without it.
func TestHistory(t *testing.T) {
	pg := harness.SharedPostgres(t)
	ctx := context.Background()
	f := newFixture(t, pg, idNameDDL, nil, idName, "sink.commit-protocol", prepared)
	pg.Exec(t, f.db, `CREATE ROLE reader_`+f.db+` LOGIN`, `CREATE ROLE stranger_`+f.db+` LOGIN`,
		`REVOKE EXECUTE ON FUNCTION pg_control_system() FROM PUBLIC`, `GRANT EXECUTE ON FUNCTION pg_control_system() TO reader_`+f.db)
	for user, told := range map[string]bool{"reader_": true, "stranger_": false} {
		u, err := url.Parse(pg.DSN(f.db))
		if err != nil {
			t.Fatal(err)
		}
		u.User = url.User(user + f.db)
		f.table.Options.Set("url", u.String(), diag.Pos{})
		conn, err := f.sink(1).connect(ctx)
		if err != nil {
			t.Fatal(err)
		}
		name, err := history(ctx, conn)
		if err != nil || (name != "") != told {
			t.Errorf("%s: %q, %v", user, name, err)
		}
		if _, err := conn.Exec(ctx, `SELECT 1`); err != nil {
			t.Errorf("the session of %s after the question: %v", user, err)
		}
		conn.Close(ctx)
	}
}

// outcomeOfTxn asks as streamsql txn does.
func outcomeOfTxn(t *testing.T, f *fixture, c checkpoint.Committable, want checkpoint.Outcome, why string) {
	t.Helper()
	x := must[connectors.TxnSystem](t)(openTransactions(f.table, "", nil))
	defer x.Close()
	o, text, err := x.Outcome(context.Background(), &c)
	if err != nil || o != want || !strings.Contains(text, why) {
		t.Errorf("streamsql txn says %v (%s), %v; want %v (%s)", o, text, err, want, why)
	}
}
