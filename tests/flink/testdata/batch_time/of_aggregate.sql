-- mode: batch
CREATE TABLE orders (id INT, cust STRING, product STRING, qty INT, price DECIMAL(10, 2), ts TIMESTAMP(3)) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/orders.jsonl', 'format' = 'json');
SELECT window_start, COUNT(*) AS n, SUM(q) AS q FROM TABLE(TUMBLE((SELECT cust, MAX(ts) AS t, SUM(qty) AS q FROM orders GROUP BY cust), DESCRIPTOR(t), INTERVAL '1' MINUTE)) GROUP BY window_start, window_end;
