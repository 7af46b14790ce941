CREATE TABLE events (k STRING, v INT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/events.jsonl', 'format' = 'json');
SELECT COUNT(*) AS n FROM events GROUP BY TUMBLE(ts, INTERVAL '10' SECOND), TUMBLE(ts, INTERVAL '5' SECOND);
