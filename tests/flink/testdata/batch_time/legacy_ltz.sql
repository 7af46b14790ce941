-- mode: batch
-- differs: Flink fails with an internal error; here the windows are those of the session's time zone
CREATE TABLE orders (id INT, cust STRING, product STRING, qty INT, price DECIMAL(10, 2), ts TIMESTAMP(3), tz AS CAST(ts AS TIMESTAMP_LTZ(3))) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/orders.jsonl', 'format' = 'json');
SELECT TUMBLE_START(tz, INTERVAL '30' SECOND) AS s, COUNT(*) AS n FROM orders GROUP BY TUMBLE(tz, INTERVAL '30' SECOND);
