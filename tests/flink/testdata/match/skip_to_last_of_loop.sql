-- compare: changelog
CREATE TABLE ticks (sym STRING, ts TIMESTAMP(3), price INT, tax INT, WATERMARK FOR ts AS ts - INTERVAL '1' SECOND) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/ticks.jsonl', 'format' = 'json');
SELECT * FROM (SELECT * FROM ticks WHERE sym = 'ACME') MATCH_RECOGNIZE (PARTITION BY sym ORDER BY ts MEASURES FIRST(A.ts) AS s, LAST(A.price) AS z, B.price AS b AFTER MATCH SKIP TO LAST A PATTERN (A{2,} B) DEFINE A AS A.price > LAST(A.price, 1) OR LAST(A.price, 1) IS NULL) m;
