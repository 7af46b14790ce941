-- mode: batch
CREATE TABLE orders (id INT, cust STRING, product STRING, qty INT, price DECIMAL(10, 2), ts TIMESTAMP(3), WATERMARK FOR ts AS ts) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/orders.jsonl', 'format' = 'json');
SELECT id, CURRENT_WATERMARK(ts) AS wm FROM orders;
