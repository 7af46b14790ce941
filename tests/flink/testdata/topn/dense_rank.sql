-- differs: this engine takes RANK and DENSE_RANK too
CREATE TABLE orders (id INT, cust STRING, product STRING, qty INT, price DECIMAL(10, 2), ts TIMESTAMP(3),
  WATERMARK FOR ts AS ts - INTERVAL '5' SECOND) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/orders.jsonl', 'format' = 'json');
SELECT * FROM (SELECT id, DENSE_RANK() OVER (PARTITION BY cust ORDER BY qty) AS rn FROM orders) WHERE rn <= 2;
