-- compare: changelog
CREATE TABLE orders (id INT, cust STRING, product STRING, qty INT, price DECIMAL(10, 2), ts TIMESTAMP(3),
  WATERMARK FOR ts AS ts - INTERVAL '5' SECOND) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/orders.jsonl', 'format' = 'json');
CREATE TABLE s (a BIGINT, b DOUBLE, c DECIMAL(20, 4)) WITH ('connector' = 'memory');
INSERT INTO s SELECT id, qty, price FROM orders;
