-- compare: changelog
CREATE TABLE orders (id INT, cust STRING, product STRING, qty INT, price DECIMAL(10, 2), ts TIMESTAMP(3),
  WATERMARK FOR ts AS ts - INTERVAL '5' SECOND) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/orders.jsonl', 'format' = 'json');
SELECT id, VAR_SAMP(qty) AS vs, VAR_POP(qty) AS vp, STDDEV_SAMP(price) AS ss FROM orders WHERE id < 3 GROUP BY id;
