package crash

// The jobs of TestCrashQueries: every operator with state, over a topic, a paced generator and a file, into every kind of
// sink. What they leave does not depend on the order in which the sources are read.

// querySources are the tables of each job. Rows of past are even, those of gen odd; time goes by a hundredth of a second
// per number, so that rows of both meet. gen paces the watermark, and with it what event time gives out.
const querySources = `
SET 'pipeline.name' = '%[1]s';
SET 'execution.checkpointing.interval' = '80 ms';
SET 'execution.checkpointing.unaligned.enabled' = '%[7]v';
SET 'parallelism.default' = '%[5]d';
SET 'table.local-time-zone' = 'UTC';
CREATE TABLE past (id BIGINT, k AS id %% 7, v AS id * 37 %% 101, ts AS CAST(TIMESTAMP '2025-01-01 00:00:00' + id * INTERVAL '0.010' SECOND AS TIMESTAMP(3)),
  WATERMARK FOR ts AS ts - INTERVAL '0.100' SECOND) WITH ('connector' = 'kafka', 'topic' = '%[1]s_in', 'properties.bootstrap.servers' = '%[2]s',
  'scan.startup.mode' = 'earliest-offset', 'scan.bounded.mode' = 'latest-offset', 'format' = 'json');
CREATE TABLE gen (j BIGINT, id AS j * 2 + 1, k AS (j * 2 + 1) %% 7, v AS (j * 2 + 1) * 37 %% 101,
  ts AS CAST(TIMESTAMP '2025-01-01 00:00:00' + (j * 2 + 1) * INTERVAL '0.010' SECOND AS TIMESTAMP(3)), WATERMARK FOR ts AS ts - INTERVAL '0.100' SECOND)
  WITH ('connector' = 'datagen', 'rows-per-second' = '%[4]d', 'fields.j.kind' = 'sequence', 'fields.j.start' = '0', 'fields.j.end' = '%[6]d');
CREATE TABLE versions (k BIGINT, name STRING, id BIGINT, ts AS CAST(TIMESTAMP '2025-01-01 00:00:00' + id * INTERVAL '0.010' SECOND AS TIMESTAMP(3)),
  WATERMARK FOR ts AS ts) WITH ('connector' = 'filesystem', 'path' = '%[3]s', 'format' = 'json');
CREATE VIEW names AS SELECT k, name, ts FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY ts DESC) AS rn FROM versions) WHERE rn = 1;
CREATE VIEW ev AS SELECT id, k, v, ts FROM past UNION ALL SELECT id, k, v, ts FROM gen;
`

// querySink is a sink and the query that fills it. Its kind says which table it is.
type querySink struct {
	name    string
	kind    sinkKind
	columns string // with the primary key, if it has one
	query   string
}

type sinkKind string

const (
	intoKafka     sinkKind = "kafka"
	intoChangelog sinkKind = "changes in kafka"
	intoCompacted sinkKind = "kafka by key"
	intoFiles     sinkKind = "files"
	intoPrepared  sinkKind = "postgres, prepared transactions"
	intoLog       sinkKind = "postgres, write-ahead"
	intoKeyed     sinkKind = "postgres by key"
)

// queryJobs are the jobs by name.
var queryJobs = map[string][]querySink{
	"joins": {
		{"interval_inner", intoKafka, "a BIGINT, b BIGINT, v BIGINT",
			"SELECT o.id, g.id, o.v + g.v FROM past AS o JOIN gen AS g ON o.k = g.k AND g.ts BETWEEN o.ts - INTERVAL '0.2' SECOND AND o.ts + INTERVAL '0.3' SECOND"},
		{"interval_outer", intoLog, "a BIGINT, b BIGINT",
			"SELECT o.id, g.id FROM past AS o LEFT JOIN gen AS g ON o.v = g.v AND g.ts BETWEEN o.ts AND o.ts + INTERVAL '1.01' SECOND"},
		{"temporal_joined", intoFiles, "id BIGINT, name STRING",
			"SELECT e.id, n.name FROM ev AS e LEFT JOIN names FOR SYSTEM_TIME AS OF e.ts AS n ON e.k = n.k"},
		{"regular", intoKeyed, "a BIGINT, b BIGINT, v BIGINT, PRIMARY KEY (a) NOT ENFORCED",
			"SELECT o.id, g.id, g.v FROM past AS o LEFT JOIN gen AS g ON o.id + 1 = g.id AND g.v > 20"},
		{"regular_inner", intoPrepared, "a BIGINT, b BIGINT",
			"SELECT o.id, g.id FROM past AS o JOIN gen AS g ON o.v = g.v AND o.k = g.k AND g.id > o.id"},
		{"joined_groups", intoCompacted, "k BIGINT, n BIGINT, s BIGINT, PRIMARY KEY (k) NOT ENFORCED",
			"SELECT COALESCE(o.k, -1), COUNT(*), SUM(g.id) FROM past AS o FULL JOIN gen AS g ON o.id = g.id + 1 AND o.v > 30 GROUP BY COALESCE(o.k, -1)"},
		{"semi_joined", intoChangelog, "id BIGINT, v BIGINT",
			"SELECT id, v FROM past WHERE id + 1 NOT IN (SELECT id FROM gen WHERE v > 50)"},
	},
	"windows": {
		{"tumbles", intoKafka, "k BIGINT, t TIMESTAMP(3), n BIGINT, s BIGINT, d BIGINT",
			"SELECT k, window_start, COUNT(*), SUM(v), COUNT(DISTINCT v) FROM TABLE(TUMBLE(TABLE ev, DESCRIPTOR(ts), INTERVAL '1' SECOND)) GROUP BY k, window_start, window_end"},
		{"hops", intoPrepared, "t TIMESTAMP(3), n BIGINT, m BIGINT",
			"SELECT window_start, COUNT(*), MAX(id) FROM TABLE(HOP(TABLE ev, DESCRIPTOR(ts), INTERVAL '0.5' SECOND, INTERVAL '2' SECOND)) GROUP BY window_start, window_end"},
		{"sessions", intoFiles, "k BIGINT, a TIMESTAMP(3), b TIMESTAMP(3), n BIGINT",
			"SELECT k, window_start, window_end, COUNT(*) FROM TABLE(SESSION(TABLE pauses PARTITION BY k, DESCRIPTOR(ts), INTERVAL '0.5' SECOND)) GROUP BY k, window_start, window_end"},
		{"window_join", intoLog, "a BIGINT, b BIGINT",
			`SELECT o.id, g.id FROM (SELECT * FROM TABLE(TUMBLE(TABLE past, DESCRIPTOR(ts), INTERVAL '1' SECOND))) AS o FULL JOIN
    (SELECT * FROM TABLE(TUMBLE(TABLE gen, DESCRIPTOR(ts), INTERVAL '1' SECOND))) AS g ON o.window_start = g.window_start AND o.window_end = g.window_end AND o.v = g.v - 1`},
		{"window_top", intoKeyed, "t TIMESTAMP(3), rn BIGINT, id BIGINT, PRIMARY KEY (t, rn) NOT ENFORCED",
			`SELECT window_start, rn, id FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY window_start, window_end ORDER BY v DESC, id) AS rn
    FROM TABLE(TUMBLE(TABLE ev, DESCRIPTOR(ts), INTERVAL '1' SECOND))) WHERE rn <= 3`},
		{"over_rows", intoFiles, "id BIGINT, s BIGINT, l BIGINT",
			"SELECT id, SUM(v) OVER (PARTITION BY k ORDER BY ts ROWS BETWEEN 9 PRECEDING AND CURRENT ROW), FIRST_VALUE(id) OVER (PARTITION BY k ORDER BY ts ROWS BETWEEN 9 PRECEDING AND CURRENT ROW) FROM ev"},
		{"over_all", intoKafka, "id BIGINT, n BIGINT, m BIGINT",
			"SELECT id, COUNT(*) OVER (PARTITION BY k ORDER BY ts), MAX(v) OVER (PARTITION BY k ORDER BY ts) FROM ev"},
		{"matched", intoPrepared, "k BIGINT, a BIGINT, b BIGINT, n BIGINT",
			`SELECT * FROM ev MATCH_RECOGNIZE (PARTITION BY k ORDER BY ts MEASURES a.id AS a, c.id AS b, COUNT(b.id) AS n
    AFTER MATCH SKIP PAST LAST ROW PATTERN (a b+ c) DEFINE b AS b.v < 60, c AS c.v >= 60)`},
	},
	"changes": {
		{"top_numbered", intoKeyed, "k BIGINT, rn BIGINT, id BIGINT, v BIGINT, PRIMARY KEY (k, rn) NOT ENFORCED",
			"SELECT k, rn, id, v FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY v DESC, id DESC) AS rn FROM ev) WHERE rn <= 5"},
		{"top_unnumbered", intoChangelog, "k BIGINT, id BIGINT",
			"SELECT k, id FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY v, id DESC) AS rn FROM ev) WHERE rn <= 5"},
		{"first_rows", intoKafka, "v BIGINT, id BIGINT",
			"SELECT v, id FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY v ORDER BY ts ASC) AS rn FROM ev) WHERE rn = 1"},
		{"last_rows", intoCompacted, "v BIGINT, id BIGINT, PRIMARY KEY (v) NOT ENFORCED",
			"SELECT v, id FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY v ORDER BY ts DESC) AS rn FROM ev) WHERE rn = 1"},
		{"common_rows", intoChangelog, "k BIGINT, v BIGINT",
			"SELECT k, v FROM past WHERE id < 500 INTERSECT SELECT k, v FROM gen"},
		{"remaining_rows", intoChangelog, "k BIGINT, v BIGINT",
			"SELECT k, v FROM past EXCEPT ALL SELECT k, v FROM gen WHERE id % 3 = 0"},
		{"grouped", intoKeyed, "k BIGINT, n BIGINT, d BIGINT, lo BIGINT, hi BIGINT, a BIGINT, PRIMARY KEY (k) NOT ENFORCED",
			"SELECT k, COUNT(*), COUNT(DISTINCT v), MIN(id), MAX(id), AVG(v) FROM ev GROUP BY k"},
		{"regrouped", intoCompacted, "n BIGINT, keys BIGINT, top BIGINT, PRIMARY KEY (n) NOT ENFORCED",
			"SELECT n % 5, COUNT(*), MAX(v) FROM (SELECT v, COUNT(*) AS n FROM ev GROUP BY v) GROUP BY n % 5"},
		{"unnested", intoPrepared, "id BIGINT, x BIGINT, o BIGINT",
			"SELECT id, x, CAST(o AS BIGINT) FROM ev CROSS JOIN UNNEST(ARRAY[k, v]) WITH ORDINALITY AS u(x, o)"},
		{"distinct_rows", intoFiles, "id BIGINT", "SELECT id FROM gen WHERE k IN (1, 2)"},
	},
}
