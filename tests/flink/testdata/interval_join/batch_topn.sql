-- mode: batch
CREATE TABLE ticks (sym STRING, ts TIMESTAMP(3), price INT, tax INT, WATERMARK FOR ts AS ts - INTERVAL '1' SECOND) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/ticks.jsonl', 'format' = 'json');
SELECT x.sym, x.price, y.price AS other FROM (SELECT sym, price, ts FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY sym, tax ORDER BY price DESC, ts) AS rn FROM ticks) WHERE rn <= 2) x JOIN ticks y ON x.sym = y.sym AND x.ts BETWEEN y.ts - INTERVAL '2' SECOND AND y.ts + INTERVAL '2' SECOND;
