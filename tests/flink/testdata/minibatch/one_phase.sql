CREATE TABLE orders (id INT, cust STRING, product STRING, qty INT, price DECIMAL(10, 2), ts TIMESTAMP(3),
  WATERMARK FOR ts AS ts - INTERVAL '5' SECOND) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/orders.jsonl', 'format' = 'json');
SET 'table.exec.mini-batch.enabled' = 'true';
SET 'table.exec.mini-batch.allow-latency' = '10 s';
SET 'table.exec.mini-batch.size' = '100';
SET 'table.optimizer.agg-phase-strategy' = 'ONE_PHASE';
SELECT cust, COUNT(*) AS n, SUM(qty) AS s FROM orders GROUP BY cust;
