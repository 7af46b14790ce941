-- A NULL of the data and a NULL of an absent key are different groups.
CREATE TABLE orders (id INT, cust STRING, product STRING, qty INT, price DECIMAL(10, 2), ts TIMESTAMP(3),
  WATERMARK FOR ts AS ts - INTERVAL '5' SECOND) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/orders.jsonl', 'format' = 'json');
SELECT cust, COUNT(*) AS n, GROUPING(cust) AS g FROM orders GROUP BY ROLLUP (cust);
