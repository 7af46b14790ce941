-- mode: batch
-- differs: window_time is the last millisecond of the window, which a TIMESTAMP(0) cannot hold
CREATE TABLE orders (id INT, cust STRING, product STRING, qty INT, price DECIMAL(10, 2), ts TIMESTAMP(0)) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/orders.jsonl', 'format' = 'json');
SELECT id, window_time FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE));
