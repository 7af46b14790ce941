package lint

var guaranteeRules = []Rule{
	{
		Code: "SSQL-E101", Name: "exactly-once-on-a-sink-without-transactions", Needs: []string{"R4", "R96"},
		Title: "a table asks for exactly once, and its connector has no transactions",
		Why:   "The option would look as if it did something. After a failure the rows since the last checkpoint are written again, and those who read them have both.",
		Fix:   "Remove the option and live with rows that repeat, or write into a connector that commits: 'kafka', 'filesystem', 'jdbc'.",
		Bad: orders + `CREATE TABLE big (id BIGINT, amount DECIMAL(10, 2)) WITH ('connector' = 'print', 'sink.delivery-guarantee' = 'exactly-once');
` + fill,
		Good: orders + `CREATE TABLE big (id BIGINT, amount DECIMAL(10, 2)) WITH ('connector' = 'print');
` + fill,
	},
	{
		Code: "SSQL-W102", Name: "sinks-of-different-guarantees", Needs: []string{"R29", "R90"},
		Title: "one job writes a table exactly once and another one less",
		Why: "A Kafka transaction covers the topics it writes and nothing else. After a failure the table outside of it has rows again, or for a moment older ones, that the topic has once: " +
			"the two disagree, and what is added up of both is wrong.",
		Fix: "Give all tables of the job the same guarantee; or write one table, and let a second job read it.",
		Bad: orders + toKafka + `);
CREATE TABLE audit (id BIGINT) WITH ('connector' = 'print');
EXECUTE STATEMENT SET BEGIN
  INSERT INTO big SELECT id, amount FROM orders WHERE amount > 1000;
  INSERT INTO audit SELECT id FROM orders;
END;
`,
		Good: orders + toKafka + `);
CREATE TABLE audit (id BIGINT) WITH ('connector' = 'filesystem', 'path' = 'audit', 'format' = 'csv');
EXECUTE STATEMENT SET BEGIN
  INSERT INTO big SELECT id, amount FROM orders WHERE amount > 1000;
  INSERT INTO audit SELECT id FROM orders;
END;
`,
	},
	{
		Code: "SSQL-W103", Name: "visible-before-the-commit", Needs: []string{"R66", "R91"},
		Title: "exactly once is asked of a table whose rows are seen before their checkpoint",
		Why: "'sink.commit-protocol' = 'upsert', and the buffer-flush options in Flink's way, ask for rows of a table with a primary key as they come. A reader then sees rows of a checkpoint that may never " +
			"complete, after a failure an older value for a moment, and where the query takes rows or values back also one that stays. That is an early commit, and fine for a dashboard; it is not for someone who pays on sight.",
		Fix:  "Leave these options out: the last change of each key is kept in the checkpoint and written when it is complete. Or remove 'sink.delivery-guarantee' to say that early rows are meant.",
		Bad:  orders + totals + `, 'sink.delivery-guarantee' = 'exactly-once', 'sink.buffer-flush.interval' = '1 s');` + "\n" + sum,
		Good: orders + totals + `, 'sink.delivery-guarantee' = 'exactly-once');` + "\n" + sum,
	},
	{
		Code: "SSQL-W104", Name: "repeated-rows-cannot-be-told-apart", Needs: []string{"R74", "R93"},
		Title: "a table without a key is written at least once",
		Why: "After a failure the rows since the last checkpoint are written again. Writing is not idempotent: without a key nobody can tell a repeated row from a new one, so every count and sum over " +
			"the table is too high.",
		Fix:  "Leave the option out (the default is exactly-once), or write by primary key, where a repeated row replaces itself.",
		Bad:  orders + toKafka + `, 'sink.delivery-guarantee' = 'at-least-once');` + "\n" + fill,
		Good: orders + toKafka + `);` + "\n" + fill,
	},
	{
		Code: "SSQL-E105", Name: "exactly-once-table-in-an-at-least-once-job", Needs: []string{"R1", "R89"},
		Title: "a table asks for exactly once, the job for at least once",
		Why: "With 'execution.checkpointing.mode' = 'AT_LEAST_ONCE' barriers are not aligned: a checkpoint can hold rows behind its barrier, which are read again after a failure. The table's transactions " +
			"commit them twice.",
		Fix:  "Remove one of the two settings. Exactly once is the default of both.",
		Bad:  "SET 'execution.checkpointing.mode' = 'AT_LEAST_ONCE';\n" + orders + toKafka + `, 'sink.delivery-guarantee' = 'exactly-once');` + "\n" + fill,
		Good: orders + toKafka + `, 'sink.delivery-guarantee' = 'exactly-once');` + "\n" + fill,
	},
	{
		Code: "SSQL-W106", Name: "at-least-once-job", Needs: []string{"R1", "R89"},
		Title: "the job is at least once, and its tables could do better",
		Why:   "Barriers are not aligned, so that a table that does not say how it is to be delivered is written without transactions: rows since the last checkpoint are written again after a failure.",
		Fix:   "Leave 'execution.checkpointing.mode' at EXACTLY_ONCE.",
		Bad:   "SET 'execution.checkpointing.mode' = 'AT_LEAST_ONCE';\n" + orders + toKafka + `);` + "\n" + fill,
		Good:  orders + toKafka + `);` + "\n" + fill,
	},
	{
		Code: "SSQL-W107", Name: "no-checkpoints", Needs: []string{"R8"},
		Title: "checkpoints are off, and the table shows rows with their checkpoint",
		Why:   "The job never ends and takes its only checkpoint when it is stopped: nothing is seen before, a crash starts from the beginning, and a Kafka transaction times out.",
		Fix:   "SET 'execution.checkpointing.interval' to the delay that readers can live with.",
		Bad:   "SET 'execution.checkpointing.interval' = '0';\n" + orders + toKafka + `);` + "\n" + fill,
		Good:  "SET 'execution.checkpointing.interval' = '5 s';\n" + orders + toKafka + `);` + "\n" + fill,
	},
	{
		Code: "SSQL-W108", Name: "guarantee-may-be-given-up", Needs: []string{"R88"},
		Title: "a restore that cannot be exact writes rows again",
		Why: "A transaction that timed out, or a damaged file, can leave a restore without an exact way. With 'streamsql.on-degraded' = 'at-least-once' it then goes back to a checkpoint from which " +
			"nothing is lost, and what readers have seen since is written again. The job's record says when that was.",
		Fix:  "Leave the setting at 'fail', and decide when it happens: the error says what can be had.",
		Bad:  "SET 'streamsql.on-degraded' = 'at-least-once';\n" + orders + toKafka + `);` + "\n" + fill,
		Good: orders + toKafka + `);` + "\n" + fill,
	},
}
