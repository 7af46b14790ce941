package lint

var checkpointRules = []Rule{
	{
		Code: "SSQL-W301", Name: "checkpoint-storm", Needs: []string{"R19"},
		Title: "checkpoints follow each other without a pause",
		Why: "With an interval below one second and no pause, a checkpoint that takes as long as the interval is followed by the next at once: the job only takes checkpoints, every one with its " +
			"transactions and syncs.",
		Fix:  "SET 'execution.checkpointing.min-pause' to about half of the interval, or a longer interval.",
		Bad:  "SET 'execution.checkpointing.interval' = '100 ms';\n" + orders + toKafka + `);` + "\n" + fill,
		Good: "SET 'execution.checkpointing.interval' = '100 ms';\nSET 'execution.checkpointing.min-pause' = '50 ms';\n" + orders + toKafka + `);` + "\n" + fill,
	},
	{
		Code: "SSQL-W302", Name: "state-expires-within-the-replay-window", Needs: []string{"R41"},
		Title: "state is dropped sooner than rows can be read again",
		Why: "After a failure, rows as old as a checkpoint interval, a checkpoint and an outage are read again. State that idles for a shorter time can be gone by then: its group starts from nothing, and " +
			"its result is too small.",
		Fix:  "SET 'table.exec.state.ttl' above interval + timeout + 'streamsql.max-downtime', or to 0.",
		Bad:  "SET 'table.exec.state.ttl' = '30 s';\n" + orders + totals + `);` + "\n" + sum,
		Good: "SET 'table.exec.state.ttl' = '1 d';\n" + orders + totals + `);` + "\n" + sum,
	},
	{
		Code: "SSQL-W303", Name: "deduplication-forgets-within-the-replay-window", Needs: []string{"R41", "R68"},
		Title: "a deduplication forgets keys sooner than rows can come again",
		Why:   "The time-to-live is the window in which a deduplication recognises a row that comes twice. One that comes later, because the writer was down and sends again, passes as a new row.",
		Fix:   "SET 'table.exec.state.ttl' above the longest time after which a writer sends again, at least interval + timeout + 'streamsql.max-downtime'.",
		Bad:   "SET 'table.exec.state.ttl' = '30 s';\n" + events + once,
		Good:  "SET 'table.exec.state.ttl' = '1 d';\n" + events + once,
	},
}

const (
	events = `CREATE TABLE events (id BIGINT, amount DECIMAL(10, 2), seen AS PROCTIME()) WITH (
  'connector' = 'kafka', 'topic' = 'events', 'properties.bootstrap.servers' = 'broker:9092', 'format' = 'json');
` + toKafka + `);
`
	once = `INSERT INTO big SELECT id, amount FROM (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY id ORDER BY seen) AS n FROM events) WHERE n = 1;
`
)
