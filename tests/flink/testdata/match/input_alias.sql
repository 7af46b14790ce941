CREATE TABLE ticks (sym STRING, ts TIMESTAMP(3), price INT, tax INT, WATERMARK FOR ts AS ts - INTERVAL '1' SECOND) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/ticks.jsonl', 'format' = 'json');
SELECT a FROM ticks AS t MATCH_RECOGNIZE (PARTITION BY t.sym ORDER BY t.ts MEASURES A.price AS a PATTERN (A B) DEFINE B AS B.price > A.price) AS m;
