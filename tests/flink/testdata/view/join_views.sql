CREATE TABLE orders (id INT, cust STRING, product STRING, qty INT, price DECIMAL(10, 2), ts TIMESTAMP(3),
  WATERMARK FOR ts AS ts - INTERVAL '5' SECOND) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/orders.jsonl', 'format' = 'json');
CREATE VIEW v1 AS SELECT cust, COUNT(*) AS n FROM orders GROUP BY cust;
CREATE VIEW v2 AS SELECT cust, MAX(price) AS p FROM orders GROUP BY cust;
SELECT v1.cust, n, p FROM v1 JOIN v2 ON v1.cust = v2.cust;
