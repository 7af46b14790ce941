-- compare: changelog
CREATE TABLE ticks (sym STRING, ts TIMESTAMP(3), price INT, tax INT, WATERMARK FOR ts AS ts - INTERVAL '1' SECOND) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/ticks.jsonl', 'format' = 'json');
SELECT * FROM (SELECT * FROM ticks WHERE sym = 'ACME') MATCH_RECOGNIZE (PARTITION BY sym ORDER BY ts MEASURES FIRST(A.price) AS a, COUNT(A.price) AS n, COUNT(B.price) AS k, C.price AS c, MATCH_ROWTIME(ts) AS rt ONE ROW PER MATCH AFTER MATCH SKIP TO NEXT ROW PATTERN (A+? B+? C) DEFINE A AS A.price > 10, B AS B.price > 14, C AS C.price > 15) m;
