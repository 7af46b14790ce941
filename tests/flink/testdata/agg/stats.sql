CREATE TABLE orders (id INT, cust STRING, product STRING, qty INT, price DECIMAL(10, 2), ts TIMESTAMP(3),
  WATERMARK FOR ts AS ts - INTERVAL '5' SECOND) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/orders.jsonl', 'format' = 'json');
SELECT STDDEV_POP(qty) AS sp, STDDEV_SAMP(qty) AS ss, VAR_POP(qty) AS vp, VAR_SAMP(qty) AS vs, VARIANCE(qty) AS v, STDDEV(qty) AS s FROM orders;
