CREATE TABLE orders (id INT, cust STRING, product STRING, qty INT, price DECIMAL(10, 2), ts TIMESTAMP(3),
  WATERMARK FOR ts AS ts - INTERVAL '5' SECOND) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/orders.jsonl', 'format' = 'json');
WITH a AS (SELECT id, qty FROM orders), b AS (SELECT qty FROM a WHERE id > 3), c(z) AS (SELECT SUM(qty) FROM b) SELECT z FROM c;
