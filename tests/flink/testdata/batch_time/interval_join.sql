-- mode: batch
CREATE TABLE orders (id INT, cust STRING, product STRING, qty INT, price DECIMAL(10, 2), ts TIMESTAMP(3)) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/orders.jsonl', 'format' = 'json');
SELECT a.id, b.id AS bid FROM orders a JOIN orders b ON a.cust = b.cust AND b.ts BETWEEN a.ts AND a.ts + INTERVAL '1' MINUTE;
