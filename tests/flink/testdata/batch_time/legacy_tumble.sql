-- mode: batch
CREATE TABLE orders (id INT, cust STRING, product STRING, qty INT, price DECIMAL(10, 2), ts TIMESTAMP(3)) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/orders.jsonl', 'format' = 'json');
SELECT TUMBLE_START(ts, INTERVAL '30' SECOND) AS s, TUMBLE_END(ts, INTERVAL '30' SECOND) AS e, COUNT(*) AS n FROM orders GROUP BY TUMBLE(ts, INTERVAL '30' SECOND);
