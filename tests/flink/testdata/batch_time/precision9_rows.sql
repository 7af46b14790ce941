-- mode: batch
CREATE TABLE orders (id INT, cust STRING, product STRING, qty INT, price DECIMAL(10, 2), ts TIMESTAMP(9)) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/orders.jsonl', 'format' = 'json');
SELECT id, window_time FROM TABLE(HOP(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE, INTERVAL '2' MINUTE));
