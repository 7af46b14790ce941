-- compare: kinds
CREATE TABLE events_d (k STRING, v INT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts - INTERVAL '10' SECOND) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/events.jsonl', 'format' = 'json');
SELECT TUMBLE_START(ts, INTERVAL '30' SECOND) AS ws, MAX(s) AS m FROM (SELECT ts, SUM(v) OVER (PARTITION BY k ORDER BY ts ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) AS s FROM events_d) GROUP BY TUMBLE(ts, INTERVAL '30' SECOND);
