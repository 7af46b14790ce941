CREATE TABLE clicks (u STRING, page STRING, ts TIMESTAMP(3), WATERMARK FOR ts AS ts - INTERVAL '10' SECOND) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/clicks.jsonl', 'format' = 'json');
SELECT u, page, window_start, window_end FROM TABLE(SESSION(TABLE clicks PARTITION BY u, DESCRIPTOR(ts), INTERVAL '15' SECOND));
