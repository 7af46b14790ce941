-- compare: changelog
CREATE TABLE orders (id INT, cust STRING, product STRING, qty INT, price DECIMAL(10, 2), ts TIMESTAMP(3),
  WATERMARK FOR ts AS ts - INTERVAL '5' SECOND) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/orders.jsonl', 'format' = 'json');
SET 'table.exec.sink.not-null-enforcer' = 'DROP';
CREATE TABLE s (id INT, qty INT NOT NULL) WITH ('connector' = 'memory');
INSERT INTO s SELECT id, qty FROM orders;
