-- differs: the time of the match is that of the column ordered by, TIMESTAMP_LTZ
CREATE TABLE ticks (sym STRING, ts TIMESTAMP(3), price INT, tax INT, lt AS CAST(ts AS TIMESTAMP_LTZ(3)), WATERMARK FOR lt AS lt - INTERVAL '1' SECOND) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/ticks.jsonl', 'format' = 'json');
SELECT * FROM ticks MATCH_RECOGNIZE (PARTITION BY sym ORDER BY lt MEASURES MATCH_ROWTIME() AS rt, A.price AS a ONE ROW PER MATCH AFTER MATCH SKIP PAST LAST ROW PATTERN (A B) DEFINE B AS B.price > A.price) m;
