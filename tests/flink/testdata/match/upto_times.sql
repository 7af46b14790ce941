-- differs: Flink's documentation has {,m}, its planner fails
CREATE TABLE ticks (sym STRING, ts TIMESTAMP(3), price INT, tax INT, WATERMARK FOR ts AS ts - INTERVAL '1' SECOND) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/ticks.jsonl', 'format' = 'json');
SELECT * FROM ticks MATCH_RECOGNIZE (PARTITION BY sym ORDER BY ts MEASURES A.price AS a, FIRST(B.price) AS b, LAST(B.price) AS z, C.price AS c ONE ROW PER MATCH AFTER MATCH SKIP PAST LAST ROW PATTERN (A B{,2} C) DEFINE A AS A.price >= 19, B AS B.price > 17, C AS C.price < 25) m;
