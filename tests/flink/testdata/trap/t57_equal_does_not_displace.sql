-- compare: changelog
CREATE TABLE orders (id INT, cust STRING, product STRING, qty INT, price DECIMAL(10, 2), ts TIMESTAMP(3),
  WATERMARK FOR ts AS ts - INTERVAL '5' SECOND) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/orders.jsonl', 'format' = 'json');
SELECT id, product FROM (SELECT id, product, ROW_NUMBER() OVER (PARTITION BY product ORDER BY price DESC) AS rn FROM orders) WHERE rn = 1;
