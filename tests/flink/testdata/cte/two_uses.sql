CREATE TABLE orders (id INT, cust STRING, product STRING, qty INT, price DECIMAL(10, 2), ts TIMESTAMP(3),
  WATERMARK FOR ts AS ts - INTERVAL '5' SECOND) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/orders.jsonl', 'format' = 'json');
WITH s AS (SELECT cust, SUM(qty) AS q FROM orders GROUP BY cust) SELECT x.cust FROM s x JOIN s y ON x.q = y.q AND x.cust = y.cust;
