-- mode: batch
CREATE TABLE orders (id INT, cust STRING, product STRING, qty INT, price DECIMAL(10, 2), ts TIMESTAMP(3)) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/orders.jsonl', 'format' = 'json');
SELECT HOP_START(ts, INTERVAL '30' SECOND, INTERVAL '60' SECOND) AS s, cust, COUNT(*) AS n FROM orders GROUP BY HOP(ts, INTERVAL '30' SECOND, INTERVAL '60' SECOND), cust;
