CREATE TABLE orders (id INT, cust STRING, product STRING, qty INT, price DECIMAL(10, 2), ts TIMESTAMP(3), WATERMARK FOR ts AS ts - INTERVAL '10' SECOND) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/orders.jsonl', 'format' = 'json');
CREATE TABLE clicks (u STRING, page STRING, ts TIMESTAMP(3), WATERMARK FOR ts AS ts) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/clicks.jsonl', 'format' = 'json');
CREATE TABLE v (cust STRING, ts TIMESTAMP(3), id INT, PRIMARY KEY (cust) NOT ENFORCED, WATERMARK FOR ts AS ts) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/orders.jsonl', 'format' = 'json');
SELECT o.id FROM orders o JOIN v FOR SYSTEM_TIME AS OF o.ts ON o.cust = v.cust WHERE CURRENT_WATERMARK(o.ts) IS NULL OR o.ts > CURRENT_WATERMARK(o.ts);
