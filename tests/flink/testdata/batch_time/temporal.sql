-- mode: batch
-- differs: Flink has event-time temporal joins in streaming mode only, and says so with an internal error
CREATE TABLE orders (id INT, cust STRING, product STRING, qty INT, price DECIMAL(10, 2), ts TIMESTAMP(3), WATERMARK FOR ts AS ts) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/orders.jsonl', 'format' = 'json');
CREATE TABLE v (cust STRING, ts TIMESTAMP(3), id INT, PRIMARY KEY (cust) NOT ENFORCED, WATERMARK FOR ts AS ts) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/orders.jsonl', 'format' = 'json');
SELECT o.id, v.id AS vid FROM orders o JOIN v FOR SYSTEM_TIME AS OF o.ts ON o.cust = v.cust;
