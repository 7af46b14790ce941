CREATE TABLE orders (id INT, cust STRING, product STRING, qty INT, price DECIMAL(10, 2), ts TIMESTAMP(3),
  WATERMARK FOR ts AS ts - INTERVAL '5' SECOND) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/orders.jsonl', 'format' = 'json');
SET 'table.exec.sink.require-on-conflict' = 'false';
CREATE TABLE s (id INT, v BIGINT, PRIMARY KEY (id) NOT ENFORCED) WITH ('connector' = 'memory', 'changelog' = 'upsert');
INSERT INTO s SELECT MOD(id, 3), n FROM (SELECT id, COUNT(*) AS n FROM orders GROUP BY id);
