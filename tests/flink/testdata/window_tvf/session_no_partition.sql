CREATE TABLE clicks (u STRING, page STRING, ts TIMESTAMP(3), WATERMARK FOR ts AS ts - INTERVAL '10' SECOND) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/clicks.jsonl', 'format' = 'json');
SELECT u, page, window_start, window_end FROM TABLE(SESSION(TABLE clicks, DESCRIPTOR(ts), INTERVAL '7' SECOND));
