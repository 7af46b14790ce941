-- mode: batch
CREATE TABLE ticks (sym STRING, ts TIMESTAMP(3), price INT, tax INT, WATERMARK FOR ts AS ts - INTERVAL '1' SECOND) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/ticks.jsonl', 'format' = 'json');
SELECT sym, price, ts FROM (SELECT sym, price, ts FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY sym, tax ORDER BY price DESC, ts) AS rn FROM ticks) WHERE rn <= 2) ORDER BY ts, price, sym;
