-- mode: batch
CREATE TABLE orders (id INT, cust STRING, product STRING, qty INT, price DECIMAL(10, 2), ts TIMESTAMP(3)) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/orders.jsonl', 'format' = 'json');
SELECT TUMBLE_START(t, INTERVAL '30' SECOND) AS s, COUNT(*) AS n FROM (SELECT id, CASE WHEN id > 2 THEN ts END AS t FROM orders) GROUP BY TUMBLE(t, INTERVAL '30' SECOND);
