-- compare: changelog
CREATE TABLE orders (id INT, cust STRING, product STRING, qty INT, price DECIMAL(10, 2), ts TIMESTAMP(3),
  WATERMARK FOR ts AS ts - INTERVAL '5' SECOND) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/orders.jsonl', 'format' = 'json');
CREATE VIEW v1 (c, q) AS SELECT cust, qty FROM orders;
CREATE TEMPORARY VIEW v2 AS SELECT c, q * 2 AS d FROM v1;
SELECT * FROM v2 WHERE d > 8;
