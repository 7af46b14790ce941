-- mode: batch
CREATE TABLE ticks (sym STRING, ts TIMESTAMP(3), price INT, tax INT) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/ticks.jsonl', 'format' = 'json');
SELECT * FROM ticks MATCH_RECOGNIZE (PARTITION BY sym ORDER BY ts, price MEASURES A.ts AS a, B.price AS bp PATTERN (A B) WITHIN INTERVAL '3' SECOND DEFINE B AS B.price <> A.price) m;
