package lint

// lookups are a stream with a time to look up at, and a table that is written and looked up.
const lookups = `CREATE TABLE orders (id BIGINT, user_id STRING, amount DECIMAL(10, 2), proc AS PROCTIME()) WITH (
  'connector' = 'kafka', 'topic' = 'orders', 'properties.bootstrap.servers' = 'broker:9092', 'format' = 'json');
CREATE TABLE totals (user_id STRING, total DECIMAL(38, 2), PRIMARY KEY (user_id) NOT ENFORCED) WITH (
  'connector' = 'jdbc', 'url' = 'jdbc:postgresql://db:5432/shop', 'table-name' = 'totals');
`

var replayRules = []Rule{
	{
		Code: "SSQL-E501", Name: "increment-through-an-upsert", Needs: []string{"R67", "R95"},
		Title: "a table is written with what was looked up in it, plus something",
		Why: "x = x + 1 is not idempotent. An upsert takes effect at once; after a failure the row is processed again, finds its own effect in the table and adds to it once more. Written with the checkpoint, " +
			"which is the default, rows of one checkpoint do not see each other, and all but the last of a key are lost. The final table is wrong, and by how much depends on chance.",
		Fix: "Let the engine keep the sum, in state that goes back with the checkpoint: GROUP BY the key.",
		Bad: lookups + `INSERT INTO totals
  SELECT o.user_id, t.total + o.amount FROM orders AS o
  LEFT JOIN totals FOR SYSTEM_TIME AS OF o.proc AS t ON o.user_id = t.user_id;
`,
		Good: lookups + `INSERT INTO totals SELECT user_id, SUM(amount) FROM orders GROUP BY user_id;
`,
	},
	{
		Code: "SSQL-W502", Name: "cumulative-values-at-least-once", Needs: []string{"R98"},
		Title: "cumulative values are written by key in an at-least-once job",
		Why: "A table by key makes a repeated row harmless only if it is the same row. A count or sum keyed by user is not: without aligned barriers the rows that are read again after a failure are in the " +
			"state already, and the next value written is too high, for ever.",
		Fix: "Leave 'execution.checkpointing.mode' at EXACTLY_ONCE; or write rows keyed by what happened (the order's id), and add up where they are read.",
		Bad: "SET 'execution.checkpointing.mode' = 'AT_LEAST_ONCE';\n" + orders + totals + `, 'sink.delivery-guarantee' = 'at-least-once');` + "\n" + sum,
		Good: "SET 'execution.checkpointing.mode' = 'AT_LEAST_ONCE';\n" + orders + `CREATE TABLE payments (id BIGINT, user_id STRING, amount DECIMAL(10, 2), PRIMARY KEY (id) NOT ENFORCED) WITH (
  'connector' = 'jdbc', 'url' = 'jdbc:postgresql://db:5432/shop', 'table-name' = 'payments', 'sink.delivery-guarantee' = 'at-least-once');
INSERT INTO payments SELECT id, user_id, amount FROM orders;
`,
	},
	{
		Code: "SSQL-W503", Name: "key-made-by-chance", Needs: []string{"R66", "R93"},
		Title: "the primary key of a table that is written before its checkpoint is another one when a row is computed again",
		Why:   "Upserting is idempotent because a replayed row replaces itself, by its key. A key of UUID() or the clock differs the second time, so the row is there twice.",
		Fix:   "Make the key of columns of the row: its id, or topic, partition and offset as metadata columns. Or leave 'sink.commit-protocol' out: rows written with their checkpoint are written once.",
		Bad: orders + `CREATE TABLE payments (id STRING, amount DECIMAL(10, 2), PRIMARY KEY (id) NOT ENFORCED) WITH (
  'connector' = 'jdbc', 'url' = 'jdbc:postgresql://db:5432/shop', 'table-name' = 'payments', 'sink.commit-protocol' = 'upsert');
INSERT INTO payments SELECT UUID(), amount FROM orders;
`,
		Good: orders + `CREATE TABLE payments (id STRING, amount DECIMAL(10, 2), PRIMARY KEY (id) NOT ENFORCED) WITH (
  'connector' = 'jdbc', 'url' = 'jdbc:postgresql://db:5432/shop', 'table-name' = 'payments', 'sink.commit-protocol' = 'upsert');
INSERT INTO payments SELECT CAST(id AS STRING), amount FROM orders;
`,
	},
}
