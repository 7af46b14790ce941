-- mode: batch
CREATE TABLE ticks (sym STRING, ts TIMESTAMP(3), price INT, tax INT, WATERMARK FOR ts AS ts - INTERVAL '1' SECOND) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/ticks.jsonl', 'format' = 'json');
SELECT * FROM (SELECT sym, price, ts FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY sym, tax ORDER BY price DESC, ts) AS rn FROM ticks) WHERE rn <= 2) MATCH_RECOGNIZE (PARTITION BY sym ORDER BY ts MEASURES A.price AS a, B.price AS b PATTERN (A B) DEFINE B AS B.price <> A.price) m;
