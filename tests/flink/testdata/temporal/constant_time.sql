CREATE TABLE rates (currency STRING, rate DECIMAL(10, 2), ts TIMESTAMP(3), WATERMARK FOR ts AS ts, PRIMARY KEY (currency) NOT ENFORCED) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/rates.jsonl', 'format' = 'json');
CREATE TABLE fxorders (oid INT, currency STRING, amount INT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts - INTERVAL '1' HOUR) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/fxorders.jsonl', 'format' = 'json');
SELECT o.oid, r.rate FROM fxorders o JOIN rates FOR SYSTEM_TIME AS OF TIMESTAMP '2024-03-01 10:00:00' AS r ON o.currency = r.currency;
