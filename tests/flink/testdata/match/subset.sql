-- differs: Flink gives NULL for what a subset reads
CREATE TABLE ticks (sym STRING, ts TIMESTAMP(3), price INT, tax INT, WATERMARK FOR ts AS ts - INTERVAL '1' SECOND) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/ticks.jsonl', 'format' = 'json');
SELECT * FROM ticks MATCH_RECOGNIZE (PARTITION BY sym ORDER BY ts MEASURES A.price AS a, LAST(U.price) AS u, COUNT(U.price) AS n, FIRST(U.price) AS f ONE ROW PER MATCH AFTER MATCH SKIP PAST LAST ROW PATTERN (A B C) SUBSET U = (A, B) DEFINE B AS B.price > A.price) m;
