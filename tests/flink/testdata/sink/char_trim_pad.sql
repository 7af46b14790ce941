-- compare: changelog
CREATE TABLE orders (id INT, cust STRING, product STRING, qty INT, price DECIMAL(10, 2), ts TIMESTAMP(3),
  WATERMARK FOR ts AS ts - INTERVAL '5' SECOND) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/orders.jsonl', 'format' = 'json');
SET 'table.exec.sink.type-length-enforcer' = 'TRIM_PAD';
CREATE TABLE s (a CHAR(4), b VARCHAR(2)) WITH ('connector' = 'memory');
INSERT INTO s SELECT product, product FROM orders;
