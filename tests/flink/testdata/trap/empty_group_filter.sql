-- compare: changelog
CREATE TABLE orders (id INT, cust STRING, product STRING, qty INT, price DECIMAL(10, 2), ts TIMESTAMP(3),
  WATERMARK FOR ts AS ts - INTERVAL '5' SECOND) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/orders.jsonl', 'format' = 'json');
SELECT cust, AVG(qty) FILTER (WHERE qty > 1000) AS a, COUNT(*) FILTER (WHERE qty > 1000) AS n FROM orders GROUP BY cust;
