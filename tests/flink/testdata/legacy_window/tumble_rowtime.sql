-- compare: kinds
CREATE TABLE events (k STRING, v INT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/events.jsonl', 'format' = 'json');
SELECT k, TUMBLE_ROWTIME(ts, INTERVAL '10' SECOND) AS wr, SUM(v) AS s FROM events GROUP BY k, TUMBLE(ts, INTERVAL '10' SECOND);
