-- mode: batch
CREATE TABLE orders (id INT, cust STRING, product STRING, qty INT, price DECIMAL(10, 2), ts TIMESTAMP(3)) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/orders.jsonl', 'format' = 'json');
SELECT window_start, cust, COUNT(*) AS n FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE)) GROUP BY window_start, window_end, ROLLUP (cust);
