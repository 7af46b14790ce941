CREATE TABLE rates_log (currency STRING, rate DECIMAL(10, 2), ts TIMESTAMP(3), WATERMARK FOR ts AS ts) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/rates.jsonl', 'format' = 'json');
CREATE TABLE fxorders (oid INT, currency STRING, amount INT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts - INTERVAL '1' HOUR) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/fxorders.jsonl', 'format' = 'json');
CREATE VIEW versioned AS SELECT currency, rate, ts FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY currency ORDER BY ts DESC) AS rn FROM rates_log) WHERE rn = 1;
SELECT o.oid, r.rate FROM fxorders o LEFT JOIN versioned FOR SYSTEM_TIME AS OF o.ts AS r ON o.currency = r.currency;
