-- mode: batch
-- differs: CUME_DIST counts the rows of equal rank, as in standard SQL; Flink numbers them one by one
CREATE TABLE orders (id INT, cust STRING, product STRING, qty INT, price DECIMAL(10, 2), ts TIMESTAMP(3),
  WATERMARK FOR ts AS ts - INTERVAL '5' SECOND) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/orders.jsonl', 'format' = 'json');
SELECT id, PERCENT_RANK() OVER (ORDER BY qty) AS p, CUME_DIST() OVER (ORDER BY qty) AS c, RANK() OVER (ORDER BY qty) AS r FROM orders WHERE qty IS NOT NULL;
