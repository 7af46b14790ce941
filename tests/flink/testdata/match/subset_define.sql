-- differs: SUBSET is refused as a whole
CREATE TABLE ticks (sym STRING, ts TIMESTAMP(3), price INT, tax INT, WATERMARK FOR ts AS ts - INTERVAL '1' SECOND) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/ticks.jsonl', 'format' = 'json');
SELECT * FROM ticks MATCH_RECOGNIZE (PARTITION BY sym ORDER BY ts MEASURES A.price AS a ONE ROW PER MATCH AFTER MATCH SKIP PAST LAST ROW PATTERN (A B) SUBSET U = (A, B) DEFINE B AS B.price > LAST(U.price, 1)) m;
