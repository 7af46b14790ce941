-- mode: batch
CREATE TABLE orders (id INT, cust STRING, product STRING, qty INT, price DECIMAL(10, 2), ts TIMESTAMP(3),
  WATERMARK FOR ts AS ts - INTERVAL '5' SECOND) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/orders.jsonl', 'format' = 'json');
SELECT id, SUM(qty) OVER (PARTITION BY cust ORDER BY id ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING) AS s, LEAD(id) OVER (PARTITION BY cust ORDER BY id) AS nx, NTILE(2) OVER (PARTITION BY cust ORDER BY id) AS nt FROM orders;
