CREATE TABLE impr (iid INT, ad STRING, ts TIMESTAMP(3), WATERMARK FOR ts AS ts - INTERVAL '1' SECOND) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/impr.jsonl', 'format' = 'json');
SELECT a.iid AS x, b.iid AS y FROM impr a JOIN impr b ON a.ad = b.ad AND b.ts BETWEEN a.ts - INTERVAL '30' SECOND AND a.ts - INTERVAL '1' SECOND;
