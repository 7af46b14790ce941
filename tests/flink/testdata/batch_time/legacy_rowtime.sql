-- mode: batch
CREATE TABLE orders (id INT, cust STRING, product STRING, qty INT, price DECIMAL(10, 2), ts TIMESTAMP(3)) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/orders.jsonl', 'format' = 'json');
SELECT TUMBLE_ROWTIME(ts, INTERVAL '30' SECOND) AS s, COUNT(*) AS n FROM orders GROUP BY TUMBLE(ts, INTERVAL '30' SECOND);
