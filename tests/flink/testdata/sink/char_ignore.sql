-- compare: changelog
CREATE TABLE orders (id INT, cust STRING, product STRING, qty INT, price DECIMAL(10, 2), ts TIMESTAMP(3),
  WATERMARK FOR ts AS ts - INTERVAL '5' SECOND) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/orders.jsonl', 'format' = 'json');
CREATE TABLE s (a CHAR(3), b VARCHAR(3)) WITH ('connector' = 'memory');
INSERT INTO s SELECT product || 'xyz', product || 'xyz' FROM orders WHERE id < 3;
