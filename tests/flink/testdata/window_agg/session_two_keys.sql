-- compare: kinds
CREATE TABLE clicks (u STRING, page STRING, ts TIMESTAMP(3), WATERMARK FOR ts AS ts - INTERVAL '10' SECOND) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/clicks.jsonl', 'format' = 'json');
SELECT u, page, window_start, window_end, COUNT(*) AS n FROM TABLE(SESSION(TABLE clicks PARTITION BY (u, page), DESCRIPTOR(ts), INTERVAL '50' SECOND)) GROUP BY u, page, window_start, window_end;
