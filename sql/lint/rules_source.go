package lint

var sourceRules = []Rule{
	{
		Code: "SSQL-W201", Name: "read-uncommitted", Needs: []string{"R5"},
		Title: "a Kafka table reads rows of open and aborted transactions",
		Why: "A writer that fails aborts its transaction and writes the rows again. With read_uncommitted the aborted rows are read too: they are counted twice here, or counted though they never took " +
			"effect anywhere else.",
		Fix: "Remove the option. The default here is read_committed (the Java client's is not).",
		Bad: `CREATE TABLE orders (id BIGINT, amount DECIMAL(10, 2)) WITH (
  'connector' = 'kafka', 'topic' = 'orders', 'properties.bootstrap.servers' = 'broker:9092', 'format' = 'json',
  'properties.isolation.level' = 'read_uncommitted');
` + toKafka + `);` + "\n" + fill,
		Good: `CREATE TABLE orders (id BIGINT, amount DECIMAL(10, 2)) WITH (
  'connector' = 'kafka', 'topic' = 'orders', 'properties.bootstrap.servers' = 'broker:9092', 'format' = 'json');
` + toKafka + `);` + "\n" + fill,
	},
	{
		Code: "SSQL-W202", Name: "gaps-are-skipped", Needs: []string{"R90"},
		Title: "records that were deleted before they were read are skipped without an error",
		Why:   "When the job was down for longer than the topic keeps records, the position to resume at is gone. The job goes on behind the gap as if nothing had happened.",
		Fix:   "Leave 'scan.on-out-of-range' at fail, and keep the topic for longer than the longest outage.",
		Bad: `CREATE TABLE orders (id BIGINT, amount DECIMAL(10, 2)) WITH (
  'connector' = 'kafka', 'topic' = 'orders', 'properties.bootstrap.servers' = 'broker:9092', 'format' = 'json',
  'scan.on-out-of-range' = 'latest');
` + toKafka + `);` + "\n" + fill,
		Good: `CREATE TABLE orders (id BIGINT, amount DECIMAL(10, 2)) WITH (
  'connector' = 'kafka', 'topic' = 'orders', 'properties.bootstrap.servers' = 'broker:9092', 'format' = 'json');
` + toKafka + `);` + "\n" + fill,
	},
}
