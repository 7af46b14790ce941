-- mode: batch
CREATE TABLE orders (id INT, cust STRING, product STRING, qty INT, price DECIMAL(10, 2), ts TIMESTAMP(3)) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/orders.jsonl', 'format' = 'json');
SELECT TUMBLE_START(d, INTERVAL '1' DAY) AS s, COUNT(*) AS n FROM (SELECT CAST(ts AS DATE) AS d FROM orders) GROUP BY TUMBLE(d, INTERVAL '1' DAY);
