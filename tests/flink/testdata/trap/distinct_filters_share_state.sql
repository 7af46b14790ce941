-- compare: changelog
CREATE TABLE orders (id INT, cust STRING, product STRING, qty INT, price DECIMAL(10, 2), ts TIMESTAMP(3),
  WATERMARK FOR ts AS ts - INTERVAL '5' SECOND) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/orders.jsonl', 'format' = 'json');
SELECT COUNT(DISTINCT product) AS a, COUNT(DISTINCT product) FILTER (WHERE qty > 4) AS b, COUNT(DISTINCT product) FILTER (WHERE qty < 3) AS c FROM orders;
