-- compare: changelog
CREATE TABLE orders (id INT, cust STRING, product STRING, qty INT, price DECIMAL(10, 2), ts TIMESTAMP(3),
  WATERMARK FOR ts AS ts - INTERVAL '5' SECOND) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/orders.jsonl', 'format' = 'json');
SELECT cust, COUNT(*) FILTER (WHERE qty > 2) AS a, SUM(qty) FILTER (WHERE product = 'pen') AS b, AVG(price) FILTER (WHERE id > 100) AS c FROM orders GROUP BY cust;
