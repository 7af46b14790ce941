-- mode: batch
CREATE TABLE ticks (sym STRING, ts TIMESTAMP(3), price INT, tax INT, WATERMARK FOR ts AS ts - INTERVAL '1' SECOND) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/ticks.jsonl', 'format' = 'json');
SELECT * FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY window_start, window_end ORDER BY price DESC, ts) AS rn FROM TABLE(TUMBLE((SELECT sym, price, ts FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY sym, tax ORDER BY price DESC, ts) AS r FROM ticks) WHERE r <= 2), DESCRIPTOR(ts), INTERVAL '5' SECOND))) WHERE rn <= 2;
