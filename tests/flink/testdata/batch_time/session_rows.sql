-- mode: batch
-- differs: Flink has no sessions in batch mode
CREATE TABLE orders (id INT, cust STRING, product STRING, qty INT, price DECIMAL(10, 2), ts TIMESTAMP(3)) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/orders.jsonl', 'format' = 'json');
SELECT * FROM TABLE(SESSION(TABLE orders PARTITION BY cust, DESCRIPTOR(ts), INTERVAL '30' SECOND));
