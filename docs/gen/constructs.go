package main

// construct is a line of the support matrix.
type construct struct {
	group, name string
	probe       string // a statement over probeTables that has it
	page        string // below docs/sql; left out when there is none yet
	differs     bool   // it is taken and stands in differences.md
	note        string
}

// probeTables are what the probes read and write: unbounded streams, a versioned table, and sinks.
const probeTables = `
CREATE TEMPORARY TABLE t (id INT, k STRING, v INT, arr ARRAY<INT>, ts TIMESTAMP(3), p AS PROCTIME(), WATERMARK FOR ts AS ts) WITH ('connector' = 'datagen');
CREATE TEMPORARY TABLE u (id INT, k STRING, v INT, ut TIMESTAMP(3), WATERMARK FOR ut AS ut) WITH ('connector' = 'datagen');
CREATE TEMPORARY TABLE versions (k STRING, v INT, vt TIMESTAMP(3), PRIMARY KEY (k) NOT ENFORCED, WATERMARK FOR vt AS vt)
  WITH ('connector' = 'kafka', 'topic' = 't', 'properties.bootstrap.servers' = 'b:9092', 'format' = 'debezium-json');
CREATE TEMPORARY TABLE dim (k STRING, v INT, PRIMARY KEY (k) NOT ENFORCED) WITH ('connector' = 'jdbc', 'url' = 'jdbc:postgresql://d:5432/d', 'table-name' = 'd');
CREATE TEMPORARY TABLE s (id INT) WITH ('connector' = 'blackhole');
CREATE TEMPORARY VIEW vw AS SELECT id, k FROM t;
`

const (
	queries    = "queries"
	aggregates = "aggregation and windows"
	joins      = "joins"
	rows       = "rows in order"
	statements = "statements"
)

var constructs = []construct{
	{queries, "SELECT, WHERE, expressions", "SELECT id + 1 FROM t WHERE v > 1;", "select.md", false, ""},
	{queries, "VALUES", "SELECT x FROM (VALUES (1), (2)) AS w(x);", "select.md#values", false, ""},
	{queries, "WITH", "WITH w AS (SELECT id FROM t) SELECT * FROM w;", "select.md#with", false, ""},
	{queries, "WITH RECURSIVE", "WITH RECURSIVE w AS (SELECT 1 AS x UNION ALL SELECT x + 1 FROM w) SELECT * FROM w;", "", false, "nor does Flink have it in streaming"},
	{queries, "SELECT DISTINCT", "SELECT DISTINCT k FROM t;", "select.md#distinct", false, ""},
	{queries, "UNION, UNION ALL", "SELECT k FROM t UNION SELECT k FROM u UNION ALL SELECT k FROM u;", "set_operations.md", false, ""},
	{queries, "INTERSECT, EXCEPT, with ALL", "SELECT k FROM t INTERSECT ALL SELECT k FROM u EXCEPT SELECT k FROM u;", "set_operations.md", false, ""},
	{queries, "IN (query), EXISTS, NOT IN, NOT EXISTS", "SELECT id FROM t WHERE k IN (SELECT k FROM u) AND NOT EXISTS (SELECT 1 FROM u WHERE u.id = t.id);", "subqueries.md", false, ""},
	{queries, "scalar subqueries", "SELECT id, (SELECT MAX(v) FROM u WHERE u.k = t.k) FROM t;", "subqueries.md", false, ""},
	{queries, "ANY, ALL (query)", "SELECT id FROM t WHERE v > ALL (SELECT v FROM u);", "subqueries.md", false, ""},
	{queries, "UNNEST, WITH ORDINALITY", "SELECT id, x, n FROM t CROSS JOIN UNNEST(arr) WITH ORDINALITY AS w(x, n);", "unnest_lateral.md", false, ""},
	{queries, "LATERAL (query)", "SELECT t.id, w.n FROM t, LATERAL (SELECT COUNT(*) AS n FROM u WHERE u.k = t.k GROUP BY u.k) AS w;", "unnest_lateral.md", false, ""},
	{queries, "hints OPTIONS, STATE_TTL, LOOKUP", "SELECT /*+ STATE_TTL('t' = '1 d') */ t.id FROM t /*+ OPTIONS('rows-per-second' = '1') */ JOIN u ON t.id = u.id;", "joins.md#state", false, ""},
	{queries, "MATCH_RECOGNIZE", "SELECT * FROM t MATCH_RECOGNIZE (PARTITION BY k ORDER BY ts MEASURES A.v AS av ONE ROW PER MATCH AFTER MATCH SKIP PAST LAST ROW PATTERN (A B) DEFINE A AS A.v > 1, B AS B.v < 1) AS m;", "match_recognize.md", false, ""},
	{queries, "PIVOT, TABLESAMPLE", "SELECT * FROM t TABLESAMPLE SYSTEM (10);", "", false, ""},

	{aggregates, "GROUP BY, HAVING", "SELECT k, SUM(v) FROM t GROUP BY k HAVING COUNT(*) > 1;", "aggregation.md", true, "changes of one batch are merged"},
	{aggregates, "DISTINCT and FILTER in aggregates", "SELECT k, COUNT(DISTINCT v) FILTER (WHERE v > 1) FROM t GROUP BY k;", "aggregation.md#distinct-and-filter", false, ""},
	{aggregates, "GROUPING SETS, ROLLUP, CUBE", "SELECT k, v, COUNT(*), GROUPING_ID(k, v) FROM t GROUP BY ROLLUP (k, v);", "aggregation.md#grouping-sets", false, ""},
	{aggregates, "mini-batches", "SET 'table.exec.mini-batch.enabled' = 'true'; SET 'table.exec.mini-batch.size' = '10'; SET 'table.exec.mini-batch.allow-latency' = '1 s'; SELECT k, COUNT(*) FROM t GROUP BY k;", "aggregation.md#mini-batches", false, ""},
	{aggregates, "TUMBLE", "SELECT window_start, COUNT(*) FROM TABLE(TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '1' MINUTE)) GROUP BY window_start, window_end;", "windows.md#tumble", false, ""},
	{aggregates, "HOP", "SELECT window_start, COUNT(*) FROM TABLE(HOP(TABLE t, DESCRIPTOR(ts), INTERVAL '1' MINUTE, INTERVAL '2' MINUTE)) GROUP BY window_start, window_end;", "windows.md#hop", false, ""},
	{aggregates, "CUMULATE", "SELECT window_start, COUNT(*) FROM TABLE(CUMULATE(TABLE t, DESCRIPTOR(ts), INTERVAL '1' MINUTE, INTERVAL '2' MINUTE)) GROUP BY window_start, window_end;", "windows.md#cumulate", false, ""},
	{aggregates, "SESSION", "SELECT window_start, k, COUNT(*) FROM TABLE(SESSION(TABLE t PARTITION BY k, DESCRIPTOR(ts), INTERVAL '1' MINUTE)) GROUP BY window_start, window_end, k;", "windows.md#session", false, ""},
	{aggregates, "windows without an aggregate", "SELECT * FROM TABLE(TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '1' MINUTE));", "windows.md#rows-with-their-window", false, ""},
	{aggregates, "windows by processing time", "SELECT window_start, COUNT(*) FROM TABLE(TUMBLE(TABLE t, DESCRIPTOR(p), INTERVAL '1' MINUTE)) GROUP BY window_start, window_end;", "windows.md#processing-time", false, ""},
	{aggregates, "group windows: GROUP BY TUMBLE(ts, …)", "SELECT TUMBLE_START(ts, INTERVAL '1' MINUTE), COUNT(*) FROM t GROUP BY TUMBLE(ts, INTERVAL '1' MINUTE);", "windows.md#group-windows-old-form", false, ""},
	{aggregates, "early and late results of group windows", "SET 'table.exec.emit.early-fire.enabled' = 'true'; SELECT TUMBLE_START(ts, INTERVAL '1' MINUTE), COUNT(*) FROM t GROUP BY TUMBLE(ts, INTERVAL '1' MINUTE);", "", false, ""},

	{joins, "INNER, LEFT, RIGHT, FULL, CROSS, NATURAL, USING", "SELECT t.id FROM t FULL JOIN u ON t.k = u.k AND t.v > u.v;", "joins.md", false, ""},
	{joins, "interval join", "SELECT t.id FROM t LEFT JOIN u ON t.id = u.id AND ut BETWEEN ts AND ts + INTERVAL '1' HOUR;", "interval_join.md", true, "the watermark behind an outer one"},
	{joins, "window join", "SELECT a.id FROM (SELECT * FROM TABLE(TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '1' MINUTE))) AS a JOIN (SELECT * FROM TABLE(TUMBLE(TABLE u, DESCRIPTOR(ut), INTERVAL '1' MINUTE))) AS b ON a.id = b.id AND a.window_start = b.window_start AND a.window_end = b.window_end;", "window_join.md", false, ""},
	{joins, "temporal join: FOR SYSTEM_TIME AS OF event time", "SELECT t.id, d.v FROM t LEFT JOIN versions FOR SYSTEM_TIME AS OF t.ts AS d ON t.k = d.k;", "temporal_join.md", false, ""},
	{joins, "lookup join: FOR SYSTEM_TIME AS OF processing time", "SELECT t.id, d.v FROM t LEFT JOIN dim FOR SYSTEM_TIME AS OF t.p AS d ON t.k = d.k;", "lookup_join.md", true, "a batch of keys is one request"},

	{rows, "OVER by event or processing time", "SELECT id, SUM(v) OVER (PARTITION BY k ORDER BY ts RANGE BETWEEN INTERVAL '1' HOUR PRECEDING AND CURRENT ROW) FROM t;", "over.md", false, ""},
	{rows, "OVER by another column", "SELECT id, SUM(v) OVER (PARTITION BY k ORDER BY v) FROM t;", "over.md#what-the-order-may-be", false, ""},
	{rows, "FOLLOWING, LEAD, NTILE over input that ends", "SELECT x, LEAD(x) OVER (ORDER BY x DESC) FROM (VALUES (1), (2)) AS w(x);", "over.md#what-the-order-may-be", true, "taken whenever all input ends"},
	{rows, "FOLLOWING, LEAD, NTILE over unbounded input", "SELECT id, LEAD(v) OVER (ORDER BY ts) FROM t;", "over.md#mistakes", false, ""},
	{rows, "QUALIFY", "SELECT id FROM t QUALIFY ROW_NUMBER() OVER (PARTITION BY k ORDER BY v DESC) <= 3;", "topn_dedup.md", false, ""},
	{rows, "Top-N", "SELECT id FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY v DESC) AS rn FROM t) WHERE rn <= 3;", "topn_dedup.md#top-n", true, "a Top-1 takes back what it replaces"},
	{rows, "deduplication", "SELECT id FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY ts DESC) AS rn FROM t) WHERE rn = 1;", "topn_dedup.md#deduplication", false, ""},
	{rows, "Top-N and deduplication in windows", "SELECT id FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY window_start, window_end ORDER BY v DESC) AS rn FROM TABLE(TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '1' MINUTE))) WHERE rn <= 3;", "topn_dedup.md#in-windows", false, ""},
	{rows, "ORDER BY event time", "SELECT id FROM t ORDER BY ts, v;", "order_limit.md", false, ""},
	{rows, "ORDER BY … LIMIT, LIMIT, OFFSET", "SELECT id FROM t ORDER BY v LIMIT 3 OFFSET 1;", "order_limit.md", false, ""},
	{rows, "ORDER BY another column of input that ends", "SELECT x FROM (VALUES (2), (1)) AS w(x) ORDER BY x DESC;", "order_limit.md", true, "Flink sorts it in batch mode only"},
	{rows, "ORDER BY another column of unbounded input", "SELECT id FROM t ORDER BY v;", "order_limit.md#mistakes", false, "nor does Flink"},

	{statements, "CREATE TABLE, computed and metadata columns, LIKE", "CREATE TEMPORARY TABLE c (extra AS v + 1) LIKE t;", "ddl.md", true, "definitions persist"},
	{statements, "CREATE VIEW", "CREATE TEMPORARY VIEW c AS SELECT id FROM t;", "ddl.md#views", false, ""},
	{statements, "INSERT INTO, EXECUTE STATEMENT SET", "EXECUTE STATEMENT SET BEGIN INSERT INTO s SELECT id FROM t; INSERT INTO s SELECT id FROM u; END;", "ddl.md#insert-and-statement-sets", false, ""},
	{statements, "ON CONFLICT DO NOTHING, DO ERROR", "INSERT INTO s SELECT id FROM t ON CONFLICT DO NOTHING;", "", false, "[ON CONFLICT DO DEDUPLICATE](changelogs_and_keys.md#keys) is there"},
	{statements, "EXPLAIN", "EXPLAIN SELECT id FROM t;", "../explain.md", true, "with the delivery of each sink"},
	{statements, "SET, RESET, SHOW, DESCRIBE", "SHOW TABLES;", "ddl.md#looking-around", false, ""},
	{statements, "CREATE TABLE … AS", "CREATE TABLE c WITH ('connector' = 'blackhole') AS SELECT id FROM t;", "", false, ""},
	{statements, "ALTER TABLE", "ALTER TABLE t ADD x INT;", "", false, ""},
	{statements, "CREATE FUNCTION", "CREATE FUNCTION f AS 'x';", "", false, "functions in Go: [embedding.md](../embedding.md)"},
	{statements, "CREATE CATALOG, CREATE DATABASE", "CREATE DATABASE d;", "", false, ""},
	{statements, "UPDATE, DELETE, TRUNCATE", "DELETE FROM s WHERE id = 1;", "", false, ""},
	{statements, "INSERT OVERWRITE", "INSERT OVERWRITE s SELECT id FROM t;", "", false, ""},
	{statements, "CREATE MATERIALIZED TABLE", "CREATE MATERIALIZED TABLE m AS SELECT id FROM t;", "", false, ""},
	{statements, "COMPILE PLAN, EXECUTE PLAN", "COMPILE PLAN 'p' FOR INSERT INTO s SELECT id FROM t;", "", false, ""},
}
