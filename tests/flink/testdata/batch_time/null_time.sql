-- mode: batch
CREATE TABLE orders (id INT, cust STRING, product STRING, qty INT, price DECIMAL(10, 2), ts TIMESTAMP(3)) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/orders.jsonl', 'format' = 'json');
SELECT window_start, COUNT(*) AS n FROM TABLE(TUMBLE((SELECT id, CASE WHEN id > 2 THEN ts END AS t FROM orders), DESCRIPTOR(t), INTERVAL '1' MINUTE)) GROUP BY window_start, window_end;
