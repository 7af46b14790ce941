-- differs: a second column of a name gets a number, id0, as in the result of a SELECT
CREATE TABLE orders (id INT, cust STRING, product STRING, qty INT, price DECIMAL(10, 2), ts TIMESTAMP(3),
  WATERMARK FOR ts AS ts - INTERVAL '5' SECOND) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/orders.jsonl', 'format' = 'json');
CREATE VIEW v1 AS SELECT id, id FROM orders;
SELECT * FROM v1;
