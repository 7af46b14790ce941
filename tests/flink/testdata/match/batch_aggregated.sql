-- mode: batch
CREATE TABLE ticks (sym STRING, ts TIMESTAMP(3), price INT, tax INT, WATERMARK FOR ts AS ts - INTERVAL '1' SECOND) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/ticks.jsonl', 'format' = 'json');
SELECT sym, COUNT(*) AS n, MAX(a) AS top FROM ticks MATCH_RECOGNIZE (PARTITION BY sym ORDER BY ts MEASURES A.price AS a PATTERN (A B?) DEFINE A AS A.price > 5) m GROUP BY sym ORDER BY sym DESC;
