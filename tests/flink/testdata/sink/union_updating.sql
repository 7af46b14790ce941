CREATE TABLE orders (id INT, cust STRING, product STRING, qty INT, price DECIMAL(10, 2), ts TIMESTAMP(3),
  WATERMARK FOR ts AS ts - INTERVAL '5' SECOND) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/orders.jsonl', 'format' = 'json');
CREATE TABLE nums (id INT, i INT, b BIGINT, d DECIMAL(10, 2), f DOUBLE, s STRING) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/nums.jsonl', 'format' = 'json');
SET 'table.exec.sink.require-on-conflict' = 'false';
CREATE TABLE s (k STRING, n BIGINT, PRIMARY KEY (k) NOT ENFORCED) WITH ('connector' = 'memory', 'changelog' = 'upsert');
INSERT INTO s SELECT cust, COUNT(*) FROM orders WHERE cust IS NOT NULL GROUP BY cust UNION ALL SELECT CAST(id AS STRING), 1 FROM nums;
