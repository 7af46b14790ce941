-- mode: batch
CREATE TABLE ticks (sym STRING, ts TIMESTAMP(3), price INT, tax INT) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/ticks.jsonl', 'format' = 'json');
CREATE VIEW rises AS SELECT * FROM ticks MATCH_RECOGNIZE (PARTITION BY sym ORDER BY ts MEASURES A.price AS a, B.ts AS t PATTERN (A B) DEFINE B AS B.price > A.price) AS m;
SELECT window_start, COUNT(*) AS n FROM TABLE(TUMBLE(TABLE rises, DESCRIPTOR(t), INTERVAL '10' SECOND)) GROUP BY window_start, window_end;
