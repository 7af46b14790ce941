-- mode: batch
CREATE TABLE ticks (sym STRING, ts TIMESTAMP(3), tz AS CAST(ts AS TIMESTAMP_LTZ(3)), price INT, tax INT) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/ticks.jsonl', 'format' = 'json');
SELECT * FROM ticks MATCH_RECOGNIZE (PARTITION BY sym ORDER BY tz MEASURES A.price AS a, LAST(B.price) AS b, B.tz AS t AFTER MATCH SKIP TO NEXT ROW PATTERN (A B) DEFINE B AS B.price > A.price) m;
