package postgres

import (
	"context"
	"testing"

	"github.com/streamsql/streamsql/checkpoint"
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
