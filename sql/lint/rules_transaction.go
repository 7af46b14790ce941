package lint

// seed is the example that people copy: a checkpoint every minute that may take two.
const seed = "SET 'execution.checkpointing.interval' = '60 s';\nSET 'execution.checkpointing.timeout' = '120 s';\n"

var transactionRules = []Rule{
	{
		Code: "SSQL-E401", Name: "checkpoint-outlives-its-transaction", Needs: []string{"R51"},
		Title: "a transaction can time out before its checkpoint commits it",
		Why: "A transaction begins with the first row behind a barrier and is committed when the next checkpoint is durable. The broker aborts it when it is older than its timeout; the checkpoint that " +
			"lists it is then worth nothing, without any crash.",
		Fix: "transaction timeout ≥ interval + checkpoint timeout + 60 s; and 'streamsql.max-downtime' more, to survive an outage. For 60 s, 120 s and a minute's outage: 300000.",
		Bad: seed + orders + toKafka + `,
  'properties.transaction.timeout.ms' = '180000');
` + fill,
		Good: seed + orders + toKafka + `,
  'properties.transaction.timeout.ms' = '300000');
` + fill,
	},
	{
		Code: "SSQL-E402", Name: "checkpoint-timeout-above-the-transaction's", Needs: []string{"R97"},
		Title: "one checkpoint may take longer than a transaction may live",
		Why:   "As SSQL-E401, and worse: a slow checkpoint is still waited for when its transaction has been aborted already.",
		Fix:   "Lower 'execution.checkpointing.timeout', or raise the transaction timeout.",
		Bad: "SET 'execution.checkpointing.timeout' = '10 min';\n" + orders + toKafka + `,
  'properties.transaction.timeout.ms' = '300000');
` + fill,
		Good: "SET 'execution.checkpointing.timeout' = '2 min';\n" + orders + toKafka + `,
  'properties.transaction.timeout.ms' = '300000');
` + fill,
	},
	{
		Code: "SSQL-W403", Name: "outage-outlives-the-transaction", Needs: []string{"R51"},
		Title: "a transaction can time out while the job is down",
		Why: "A job that is killed behind a checkpoint leaves a transaction that the next start commits. When that start comes later than the timeout, the broker has aborted it, and the job has to go back " +
			"one checkpoint, or to stop where that is not exact.",
		Fix: "transaction timeout ≥ interval + checkpoint timeout + 'streamsql.max-downtime' + 60 s, and the brokers' transaction.max.timeout.ms as large.",
		Bad: seed + orders + toKafka + `,
  'properties.transaction.timeout.ms' = '240000');
` + fill,
		Good: seed + orders + toKafka + `,
  'properties.transaction.timeout.ms' = '300000');
` + fill,
	},
	{
		Code: "SSQL-W404", Name: "brokers-must-allow-longer-transactions", Needs: []string{"R50", "R51"},
		Title: "the checkpoints need longer transactions than brokers allow by default",
		Why:   "Without 'properties.transaction.timeout.ms' the timeout is the brokers' transaction.max.timeout.ms, 15 minutes unless changed. These checkpoints need more; with such brokers the job is refused when it starts.",
		Fix:   "Raise transaction.max.timeout.ms on the brokers, or take shorter checkpoints. `check --live` asks the brokers.",
		Bad:   "SET 'execution.checkpointing.interval' = '10 min';\n" + orders + toKafka + `);` + "\n" + fill,
		Good:  "SET 'execution.checkpointing.interval' = '1 min';\n" + orders + toKafka + `);` + "\n" + fill,
	},
	{
		Code: "SSQL-W405", Name: "transaction-timeout-above-the-brokers'-default-maximum", Needs: []string{"R50", "R94"},
		Title: "the transaction timeout is above what brokers allow by default",
		Why:   "One hour is the default of Flink's connector, 15 minutes the brokers' maximum: InitProducerId is refused, and the job fails when it starts.",
		Fix:   "Leave the option out: the default here is the brokers' maximum. Or raise transaction.max.timeout.ms. `check --live` asks the brokers.",
		Bad: orders + toKafka + `,
  'properties.transaction.timeout.ms' = '3600000');
` + fill,
		Good: orders + toKafka + `);` + "\n" + fill,
	},
	{
		Code: "SSQL-E406", Name: "two-jobs-with-one-transactional-prefix", Needs: []string{"R48", "R49"},
		Title: "two jobs write under one transactional id prefix",
		Why:   "Ids are made of the prefix. A job aborts what it finds open under its prefix when it starts, so each would abort the other's transactions. The second to start is refused.",
		Fix:   "Leave 'sink.transactional-id-prefix' out (the default has the job's name and lineage in it), or give every table its own; or write both in one statement set.",
		Bad: orders + toKafka + `, 'sink.transactional-id-prefix' = 'shop');
INSERT INTO big SELECT id, amount FROM orders WHERE amount > 1000;
INSERT INTO big SELECT id, -amount FROM orders WHERE amount < -1000;
`,
		Good: orders + toKafka + `, 'sink.transactional-id-prefix' = 'shop');
EXECUTE STATEMENT SET BEGIN
  INSERT INTO big SELECT id, amount FROM orders WHERE amount > 1000;
  INSERT INTO big SELECT id, -amount FROM orders WHERE amount < -1000;
END;
`,
	},
	{
		Code: "SSQL-W407", Name: "many-transactions", Needs: []string{"R55"},
		Title: "more than 1,000 transactions are open at a time",
		Why:   "Every one costs the brokers memory and a write per partition when it ends, and holds back what read_committed consumers see of its partitions.",
		Fix:   "Leave 'sink.transaction-scope' at job, or lower 'sink.parallelism'.",
		Bad: "SET 'execution.checkpointing.max-concurrent-checkpoints' = '8';\n" + orders + toKafka + `,
  'sink.transaction-scope' = 'subtask', 'sink.parallelism' = '120', 'sink.transactional-id-slots' = '10');
` + fill,
		Good: "SET 'execution.checkpointing.max-concurrent-checkpoints' = '8';\n" + orders + toKafka + `,
  'sink.parallelism' = '120', 'sink.transactional-id-slots' = '10');
` + fill,
	},
	{
		Code: "SSQL-W408", Name: "too-few-transactional-ids", Needs: []string{"R20", "R55"},
		Title: "there are fewer transactional ids than checkpoints at a time need",
		Why:   "Ids are used in turn, and one is free again when a later checkpoint no longer lists its transaction. With too few, writing waits for that.",
		Fix:   "Set 'sink.transactional-id-slots' to the concurrent checkpoints + 2.",
		Bad:   "SET 'execution.checkpointing.max-concurrent-checkpoints' = '4';\n" + orders + toKafka + `);` + "\n" + fill,
		Good: "SET 'execution.checkpointing.max-concurrent-checkpoints' = '4';\n" + orders + toKafka + `,
  'sink.transactional-id-slots' = '6');
` + fill,
	},
	{
		Code: "SSQL-W409", Name: "lost-transactions-are-ignored", Needs: []string{"R53", "R92"},
		Title: "rows of a transaction that timed out are given up",
		Why:   "A transaction id that the checkpoint lists is worth as much as one it does not, when its loss is ignored: the rows are gone, and nothing reads them again.",
		Fix:   "Remove the option: the job goes back one checkpoint where that is exact, and stops with a list where it is not.",
		Bad: orders + toKafka + `,
  'sink.recovery.on-lost-transaction' = 'ignore');
` + fill,
		Good: orders + toKafka + `);` + "\n" + fill,
	},
}
