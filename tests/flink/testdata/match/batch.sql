-- mode: batch
CREATE TABLE ticks (sym STRING, ts TIMESTAMP(3), price INT, tax INT, WATERMARK FOR ts AS ts - INTERVAL '1' SECOND) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/ticks.jsonl', 'format' = 'json');
SELECT * FROM ticks MATCH_RECOGNIZE (PARTITION BY sym ORDER BY ts MEASURES A.price AS a, LAST(B.price) AS b, SUM(B.tax) AS s AFTER MATCH SKIP TO NEXT ROW PATTERN (A B+ C) DEFINE B AS B.price > 10) m;
