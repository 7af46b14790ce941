package streamsql_test

import (
	"context"
	"testing"

	"github.com/streamsql/streamsql"
)

// Goal: what a job has read are the records of its input, also where its source leaves out rows that the query does not want. Method: the
// generator of Nexmark, which makes bids only when that is all that is asked for.
func TestRowsInAreRowsRead(t *testing.T) {
	ctx := context.Background()
	eng, err := streamsql.Open("", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer eng.Close()
	for _, s := range []string{
		"CREATE TABLE nexmark (event_type INT, bid ROW<auction BIGINT, bidder BIGINT, price BIGINT, channel STRING, url STRING, `dateTime` TIMESTAMP(3), extra STRING>) " +
			"WITH ('connector' = 'nexmark', 'events.num' = '5000')",
		`CREATE TABLE f (price BIGINT) WITH ('connector' = 'blackhole')`,
	} {
		if _, err := eng.Exec(ctx, s); err != nil {
			t.Fatal(err)
		}
	}
	res, err := eng.Exec(ctx, `INSERT INTO f SELECT bid.price FROM nexmark WHERE event_type = 2`)
	if err != nil {
		t.Fatal(err)
	}
	if err := res.Job.Wait(ctx); err != nil {
		t.Fatal(err)
	}
	st := res.Job.Status()
	f, source := res.Job.Flow(st), st.Nodes[0]
	if f.In != 5000 || source.RowsIn != 5000 || source.RowsOut != 4600 || f.Out != 4600 {
		t.Errorf("the job says %d rows in and %d out, its source %d and %d; want 5000 events of which 4600 are bids", f.In, f.Out, source.RowsIn, source.RowsOut)
	}
}
