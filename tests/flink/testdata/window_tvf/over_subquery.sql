-- compare: changelog
CREATE TABLE events (k STRING, v INT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/events.jsonl', 'format' = 'json');
CREATE VIEW big AS SELECT k, v * 2 AS w, ts FROM events WHERE v > 4;
SELECT k, w, window_start FROM TABLE(TUMBLE(TABLE big, DESCRIPTOR(ts), INTERVAL '10' SECOND));
