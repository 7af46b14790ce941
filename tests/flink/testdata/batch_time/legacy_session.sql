-- mode: batch
-- differs: Flink has no sessions in batch mode
CREATE TABLE orders (id INT, cust STRING, product STRING, qty INT, price DECIMAL(10, 2), ts TIMESTAMP(3)) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/orders.jsonl', 'format' = 'json');
SELECT SESSION_START(ts, INTERVAL '30' SECOND) AS s, cust, COUNT(*) AS n FROM orders GROUP BY SESSION(ts, INTERVAL '30' SECOND), cust;
