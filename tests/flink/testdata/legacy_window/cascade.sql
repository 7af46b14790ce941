-- compare: kinds
CREATE TABLE events (k STRING, v INT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/events.jsonl', 'format' = 'json');
SELECT TUMBLE_END(r, INTERVAL '20' SECOND) AS we, SUM(n) AS total FROM (SELECT k, TUMBLE_ROWTIME(ts, INTERVAL '5' SECOND) AS r, COUNT(*) AS n FROM events GROUP BY k, TUMBLE(ts, INTERVAL '5' SECOND)) GROUP BY TUMBLE(r, INTERVAL '20' SECOND);
