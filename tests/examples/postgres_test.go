package examples

// Goal: examples/kafka_to_postgres.sql moves rows from a real Kafka into a real PostgreSQL, is stopped with Ctrl-C, and
// goes on where it was, as a database user with few rights. Method: put the servers' addresses into the file, feed orders
// before and after a restart.

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/streamsql/streamsql/tests/harness"
)

func TestKafkaToPostgres(t *testing.T) {
	k, pg := harness.SharedKafka(t), harness.SharedPostgres(t)
	topic, db := k.Topic(t, 1), pg.CreateDatabase(t)
	text, err := os.ReadFile("../../examples/kafka_to_postgres.sql")
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range strings.Split(string(text), "\n") {
		if _, ddl, ok := strings.Cut(line, "psql shop -c '"); ok {
			pg.Exec(t, db, strings.TrimSuffix(ddl, "'"))
		}
	}
	dsn := clerk(t, pg, db)
	sql := strings.NewReplacer("'localhost:9092'", "'"+k.Addr()+"'", "'postgres://localhost:5432/shop'", "'"+dsn+"'",
		"'topic' = 'orders'", "'topic' = '"+topic+"'", "'shop'", "'"+topic+"'").Replace(string(text))
	dir := t.TempDir()
	file := filepath.Join(dir, "kafka_to_postgres.sql")
	if err := os.WriteFile(file, []byte(sql), 0o600); err != nil {
		t.Fatal(err)
	}
	run := func(large, users []string) {
		t.Helper()
		p := harness.Start(t, harness.Command{Path: harness.BuildStreamsql(t), Args: []string{"run", file}, Dir: dir})
		waitRows(t, p, pg, db, `SELECT order_id, user_id, amount::text FROM large_orders ORDER BY 1`, large)
		waitRows(t, p, pg, db, `SELECT user_id, orders, total::text FROM users ORDER BY 1`, users)
		if err := p.Signal(syscall.SIGINT); err != nil {
			t.Fatal(err)
		}
		if code, err := p.Wait(patience); err != nil || code != 0 {
			t.Fatalf("exit %d, %v", code, err)
		}
	}
	order := func(id, user int, amount string) string {
		return fmt.Sprintf(`{"order_id":%d,"user_id":%d,"amount":%s}`, id, user, amount)
	}
	k.Produce(t, topic, order(1, 7, "12.50"), order(2, 8, "100"), order(3, 7, "250.25"))
	run([]string{"2|8|100.00", "3|7|250.25"}, []string{"7|2|262.75", "8|1|100.00"})
	k.Produce(t, topic, order(4, 7, "1000"))
	run([]string{"2|8|100.00", "3|7|250.25", "4|7|1000.00"}, []string{"7|3|1262.75", "8|1|100.00"})
	if left := pg.PreparedTransactions(t, db); len(left) > 0 {
		t.Errorf("prepared transactions are left: %v", left)
	}
}

// clerk makes a user with no more rights than docs/postgres.md asks for, and returns the address to connect as that user.
func clerk(t *testing.T, pg *harness.PG, db string) string {
	t.Helper()
	page, err := os.ReadFile("../../docs/postgres.md")
	if err != nil {
		t.Fatal(err)
	}
	_, block, ok := strings.Cut(string(page), "```sql\nCREATE TABLE _streamsql_commits")
	block, _, closed := strings.Cut(block, "```")
	if !ok || !closed {
		t.Fatal("docs/postgres.md does not show the bookkeeping tables")
	}
	user := "clerk_" + db
	pg.Exec(t, db, "CREATE TABLE _streamsql_commits"+block, "CREATE ROLE "+user+" LOGIN",
		"GRANT SELECT, INSERT, UPDATE, DELETE ON large_orders, users, _streamsql_commits, _streamsql_owner, _streamsql_applied TO "+user)
	u, err := url.Parse(pg.DSN(db))
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.User(user)
	return u.String()
}

// waitRows asks the database until it has the rows, while p lives.
func waitRows(t *testing.T, p *harness.Process, pg *harness.PG, db, query string, want []string) {
	t.Helper()
	var got []string
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); {
		if got = pg.Rows(t, db, query); slices.Equal(got, want) {
			return
		}
		select {
		case <-p.Done():
			t.Fatalf("the job ended; %s gives %v, want %v", query, got, want)
		case <-time.After(20 * time.Millisecond):
		}
	}
	t.Fatalf("%s gives %v, want %v", query, got, want)
}
