-- compare: kinds
CREATE TABLE events_d (k STRING, v INT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts - INTERVAL '10' SECOND) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/events.jsonl', 'format' = 'json');
SELECT TUMBLE_START(ts, INTERVAL '10' SECOND) AS ws, COUNT(*) AS n, COUNT(DISTINCT k) AS d FROM events_d GROUP BY TUMBLE(ts, INTERVAL '10' SECOND);
