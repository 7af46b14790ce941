-- mode: batch
CREATE TABLE ticks (sym STRING, ts TIMESTAMP(3), price INT, tax INT, WATERMARK FOR ts AS ts - INTERVAL '1' SECOND) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/ticks.jsonl', 'format' = 'json');
SELECT y.sym, y.price, x.price AS top FROM ticks y LEFT JOIN (SELECT sym, price, ts FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY sym, tax ORDER BY price DESC, ts) AS rn FROM ticks) WHERE rn <= 2) x ON x.sym = y.sym AND x.ts BETWEEN y.ts - INTERVAL '1' SECOND AND y.ts;
