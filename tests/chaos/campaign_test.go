package chaos

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/streamsql/streamsql/tests/harness"
)

// campaignEnv names the environment variable with the number of faults for each job of the campaign; make chaos sets it.
const campaignEnv = "STREAMSQL_TEST_CHAOS"

// campaignTables are read by the jobs below: orders and payments of three partitions each, ten minutes of event time.
const campaignTables = `
CREATE TABLE orders (id BIGINT, user_id INT, amount DECIMAL(10, 2), ts TIMESTAMP(3), WATERMARK FOR ts AS ts - INTERVAL '5' MINUTE) WITH ('connector' = 'kafka',
  'topic' = '{orders}', 'properties.bootstrap.servers' = '{kafka}', 'scan.startup.mode' = 'earliest-offset', 'format' = 'json');
CREATE TABLE payments (order_id BIGINT, paid DECIMAL(10, 2), ts TIMESTAMP(3), WATERMARK FOR ts AS ts - INTERVAL '5' MINUTE) WITH ('connector' = 'kafka',
  'topic' = '{payments}', 'properties.bootstrap.servers' = '{kafka}', 'scan.startup.mode' = 'earliest-offset', 'format' = 'json');
`

// campaign are jobs as users write them; examples/ by their names, and others. {name} is replaced.
var campaign = []struct{ name, sql string }{
	{"examples/files_to_files", ""},
	{"examples/upsert", ""},
	{"examples/kafka_to_postgres", ""},
	{"joins", campaignTables + `
CREATE TABLE unpaid (id BIGINT, user_id INT, PRIMARY KEY (id) NOT ENFORCED) WITH ('connector' = 'postgres', 'url' = '{postgres}', 'table-name' = 'unpaid');
CREATE TABLE balance (user_id INT, due DECIMAL(38, 2), PRIMARY KEY (user_id) NOT ENFORCED) WITH ('connector' = 'jdbc', 'url' = 'jdbc:{postgres}', 'table-name' = 'balance');
CREATE TABLE paid_by_user (user_id INT, n BIGINT, PRIMARY KEY (user_id) NOT ENFORCED) WITH ('connector' = 'postgres', 'url' = '{postgres}', 'table-name' = 'paid_by_user');
CREATE TABLE quick (id BIGINT, amount DECIMAL(10, 2), paid DECIMAL(10, 2)) WITH ('connector' = 'kafka', 'topic' = '{quick}', 'properties.bootstrap.servers' = '{kafka}', 'format' = 'json');
CREATE TABLE by_user (user_id INT, n BIGINT, paid DECIMAL(38, 2)) WITH ('connector' = 'kafka', 'topic' = '{by_user}', 'properties.bootstrap.servers' = '{kafka}', 'format' = 'debezium-json');
EXECUTE STATEMENT SET BEGIN
  INSERT INTO unpaid SELECT o.id, o.user_id FROM orders o LEFT JOIN payments p ON o.id = p.order_id WHERE p.order_id IS NULL;
  INSERT INTO balance SELECT user_id, SUM(due) FROM (SELECT user_id, amount AS due FROM orders UNION ALL SELECT CAST(order_id * order_id % 97 AS INT), -paid FROM payments) GROUP BY user_id;
  INSERT INTO paid_by_user SELECT o.user_id, COUNT(*) FROM orders o JOIN payments p ON o.id = p.order_id GROUP BY o.user_id;
  INSERT INTO quick SELECT o.id, o.amount, p.paid FROM orders o JOIN payments p ON o.id = p.order_id AND p.ts BETWEEN o.ts AND o.ts + INTERVAL '1' MINUTE;
  INSERT INTO by_user SELECT o.user_id, COUNT(*), SUM(p.paid) FROM orders o JOIN payments p ON o.id = p.order_id GROUP BY o.user_id;
END;`},
	{"windows", campaignTables + `
CREATE TABLE per_minute (window_start TIMESTAMP(3), n BIGINT, total DECIMAL(38, 2)) WITH ('connector' = 'postgres', 'url' = '{postgres}', 'table-name' = 'per_minute');
CREATE TABLE sessions (user_id INT, window_start TIMESTAMP(3), window_end TIMESTAMP(3), n BIGINT) WITH ('connector' = 'kafka', 'topic' = '{sessions}', 'properties.bootstrap.servers' = '{kafka}', 'format' = 'json');
CREATE TABLE best (rank_in BIGINT, window_start TIMESTAMP(3), id BIGINT, amount DECIMAL(10, 2)) WITH ('connector' = 'filesystem', 'path' = '{best}', 'format' = 'csv');
EXECUTE STATEMENT SET BEGIN
  INSERT INTO per_minute SELECT window_start, COUNT(*), SUM(amount) FROM TABLE(HOP(TABLE orders, DESCRIPTOR(ts), INTERVAL '30' SECOND, INTERVAL '1' MINUTE)) GROUP BY window_start, window_end;
  INSERT INTO sessions SELECT user_id, window_start, window_end, COUNT(*) FROM TABLE(SESSION(TABLE orders PARTITION BY user_id, DESCRIPTOR(ts), INTERVAL '10' SECOND)) GROUP BY user_id, window_start, window_end;
  INSERT INTO best SELECT n, window_start, id, amount FROM (
    SELECT *, ROW_NUMBER() OVER (PARTITION BY window_start, window_end ORDER BY amount DESC, id) AS n FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))) WHERE n <= 3;
END;`},
	{"write-ahead", campaignTables + `
SET 'execution.checkpointing.unaligned' = 'true';
CREATE TABLE big (id BIGINT, amount DECIMAL(10, 2)) WITH ('connector' = 'kafka', 'topic' = '{large}', 'properties.bootstrap.servers' = '{kafka}', 'format' = 'json', 'sink.commit-protocol' = 'write-ahead');
CREATE TABLE copy (id BIGINT, amount DECIMAL(10, 2)) WITH ('connector' = 'kafka', 'topic' = '{copy}', 'properties.bootstrap.servers' = '{kafka}', 'format' = 'json');
CREATE TABLE ledger (id BIGINT, amount DECIMAL(10, 2)) WITH ('connector' = 'postgres', 'url' = '{postgres}', 'table-name' = 'ledger', 'sink.commit-protocol' = 'write-ahead');
CREATE TABLE account (user_id INT, n BIGINT, total DECIMAL(38, 2), PRIMARY KEY (user_id) NOT ENFORCED) WITH ('connector' = 'upsert-kafka', 'topic' = '{account}', 'properties.bootstrap.servers' = '{kafka}', 'key.format' = 'json', 'value.format' = 'json');
EXECUTE STATEMENT SET BEGIN
  INSERT INTO big SELECT id, amount FROM orders WHERE amount >= 500;
  INSERT INTO copy SELECT id, amount FROM orders;
  INSERT INTO ledger SELECT id, amount FROM orders;
  INSERT INTO account SELECT user_id, COUNT(*), SUM(amount) FROM orders GROUP BY user_id;
END;`},
}

// Goal: what users write survives what streamsql chaos does to it. Method: the examples and other jobs, on a broker and a database of
// this test's own, which the check's command kills and restarts, too.
func TestCampaign(t *testing.T) {
	faults, err := strconv.Atoi(os.Getenv(campaignEnv))
	if err != nil {
		t.Skip("minutes for each job: make chaos N=50")
	}
	root, err := harness.ModuleRoot()
	if err != nil {
		t.Fatal(err)
	}
	k, pg := harness.Kafka(t), harness.Postgres(t)
	name := harness.UniqueName(t)
	db := pg.CreateDatabase(t)
	pg.Exec(t, db, "CREATE TABLE large_orders (order_id bigint, user_id int, amount numeric(10,2))", "CREATE TABLE users (user_id int PRIMARY KEY, orders bigint, total numeric)",
		"CREATE TABLE unpaid (id bigint PRIMARY KEY, user_id int)", "CREATE TABLE balance (user_id int PRIMARY KEY, due numeric(38,2))",
		"CREATE TABLE paid_by_user (user_id int PRIMARY KEY, n bigint)", "CREATE TABLE per_minute (window_start timestamp, n bigint, total numeric)", "CREATE TABLE ledger (id bigint, amount numeric(10,2))")
	forever := map[string]string{"retention.ms": "-1"}
	for _, topic := range []string{"orders", "payments", "quick", "by_user", "sessions", "large", "copy", "account", "by_scale"} {
		k.CreateTopic(t, name+topic, 3, forever)
	}
	const n = 6000
	var orders, payments []string
	for i := range n {
		at := time.Date(2024, 5, 1, 10, 0, 0, 0, time.UTC).Add(time.Duration(i) * 600 * time.Second / n)
		orders = append(orders, fmt.Sprintf(`{"id":%d,"order_id":%[1]d,"user_id":%d,"amount":%d.%02d,"ts":%q}`, i, i*i%97, i*7919%1000, i%100, at.Format("2006-01-02 15:04:05.000")))
		if i%5 != 0 {
			payments = append(payments, fmt.Sprintf(`{"order_id":%d,"paid":%d.00,"ts":%q}`, i, i%300, at.Add(time.Duration(i%120)*time.Second).Format("2006-01-02 15:04:05.000")))
		}
	}
	k.Produce(t, name+"orders", orders...)
	k.Produce(t, name+"payments", payments...)
	killKafka, kafkaKills := restarts(t, k)
	killPostgres, postgresKills := restarts(t, pg)
	dir := t.TempDir()
	for _, j := range campaign {
		t.Run(j.name, func(t *testing.T) {
			text := j.sql
			if text == "" {
				b, err := os.ReadFile(filepath.Join(root, j.name+".sql"))
				if err != nil {
					t.Fatal(err)
				}
				text = string(b)
			}
			text = strings.NewReplacer("localhost:9092", k.Addr(), "postgres://localhost:5432/shop", pg.DSN(db), "'topic' = 'orders'", "'topic' = '"+name+"orders'",
				"'topic' = 'by_scale'", "'topic' = '"+name+"by_scale', 'properties.bootstrap.servers' = '"+k.Addr()+"'").Replace(text)
			text = strings.NewReplacer("{kafka}", k.Addr(), "{postgres}", pg.DSN(db), "{best}", filepath.Join(dir, "best")).Replace(text)
			for _, topic := range []string{"orders", "payments", "quick", "by_user", "sessions", "large", "copy", "account"} {
				text = strings.ReplaceAll(text, "{"+topic+"}", name+topic)
			}
			file := filepath.Join(dir, "job.sql")
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			args := []string{"chaos", file, "--kills", fmt.Sprint(faults), "--seed", fmt.Sprint(harness.Day(t)), "--timeout", "10h"}
			if strings.Contains(text, k.Addr()) {
				args = append(args, "--server-fault", killKafka)
			}
			if strings.Contains(text, pg.Addr()) {
				args = append(args, "--server-fault", killPostgres)
			}
			p := harness.Start(t, harness.Command{Path: harness.BuildStreamsql(t), Dir: root, Args: args})
			if code, err := p.Wait(10 * time.Hour); err != nil || code != 0 {
				t.Errorf("exit code %d, %v\n%s", code, err, p.Stderr())
			}
			t.Log(p.Stdout())
		})
	}
	t.Logf("the broker was killed %d times, the database %d times", kafkaKills(), postgresKills())
}
