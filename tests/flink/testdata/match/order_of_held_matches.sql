-- compare: changelog
CREATE TABLE ticks (sym STRING, ts TIMESTAMP(3), price INT, tax INT, WATERMARK FOR ts AS ts - INTERVAL '1' SECOND) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/ticks.jsonl', 'format' = 'json');
SELECT * FROM (SELECT * FROM ticks WHERE sym = 'ACME') MATCH_RECOGNIZE (PARTITION BY sym ORDER BY ts MEASURES A.ts AS s, LAST(B.ts) AS l, C.price AS c, MATCH_ROWTIME(ts) AS rt ONE ROW PER MATCH AFTER MATCH SKIP TO NEXT ROW PATTERN (A B+? C) WITHIN INTERVAL '8' SECOND DEFINE C AS C.price > A.price + 7) m;
