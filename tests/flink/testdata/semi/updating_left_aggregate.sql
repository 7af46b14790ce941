CREATE TABLE orders (id INT, cust STRING, product STRING, qty INT, price DECIMAL(10, 2), ts TIMESTAMP(3),
  WATERMARK FOR ts AS ts - INTERVAL '5' SECOND) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/orders.jsonl', 'format' = 'json');
CREATE TABLE lt (a INT, b STRING, c INT) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/lt.jsonl', 'format' = 'json');
SELECT cust, n FROM (SELECT cust, COUNT(*) AS n FROM orders GROUP BY cust) x WHERE EXISTS (SELECT 1 FROM lt WHERE lt.a = x.n);
