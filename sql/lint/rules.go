package lint

import "slices"

// Rules are all rules, by code. The texts and examples are in rules_*.go, a file per chapter.
var Rules = slices.Concat(guaranteeRules, sourceRules, checkpointRules, transactionRules, replayRules, liveRules)

// Chapters are the groups of rules, by the first digit of their codes.
var Chapters = []struct{ Digit, Title string }{
	{"1", "What a sink promises"},
	{"2", "What a source reads again"},
	{"3", "Checkpoints and state"},
	{"4", "Kafka transactions"},
	{"5", "Rows that are computed again"},
	{"6", "What only the systems know"},
}

// Parts of the examples.
const (
	orders = `CREATE TABLE orders (id BIGINT, user_id STRING, amount DECIMAL(10, 2)) WITH (
  'connector' = 'kafka', 'topic' = 'orders', 'properties.bootstrap.servers' = 'broker:9092', 'format' = 'json');
`
	toKafka = `CREATE TABLE big (id BIGINT, amount DECIMAL(10, 2)) WITH (
  'connector' = 'kafka', 'topic' = 'big', 'properties.bootstrap.servers' = 'broker:9092', 'format' = 'json'`
	fill = `INSERT INTO big SELECT id, amount FROM orders WHERE amount > 1000;
`
	totals = `CREATE TABLE totals (user_id STRING, total DECIMAL(38, 2), PRIMARY KEY (user_id) NOT ENFORCED) WITH (
  'connector' = 'jdbc', 'url' = 'jdbc:postgresql://db:5432/shop', 'table-name' = 'totals'`
	sum = `INSERT INTO totals SELECT user_id, SUM(amount) FROM orders GROUP BY user_id;
`
)
