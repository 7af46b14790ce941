-- compare: kinds
CREATE TABLE clicks (u STRING, page STRING, ts TIMESTAMP(3), WATERMARK FOR ts AS ts - INTERVAL '10' SECOND) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/clicks.jsonl', 'format' = 'json');
SELECT window_start, window_end, COUNT(*) AS n FROM TABLE(SESSION(TABLE clicks, DESCRIPTOR(ts), INTERVAL '7' SECOND)) GROUP BY window_start, window_end;
