-- mode: batch
-- differs: Flink fails to compile the code it generates
CREATE TABLE orders (id INT, cust STRING, product STRING, qty INT, price DECIMAL(10, 2), ts TIMESTAMP(3)) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/orders.jsonl', 'format' = 'json');
SELECT id, SUM(qty) OVER (PARTITION BY cust ORDER BY ts RANGE BETWEEN INTERVAL '1' MINUTE PRECEDING AND CURRENT ROW) AS q FROM orders;
