-- compare: kinds
CREATE TABLE events_d (k STRING, v INT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts - INTERVAL '10' SECOND) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/events.jsonl', 'format' = 'json');
SELECT k, v, window_end, rn FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY k, window_start, window_end ORDER BY v) AS rn FROM TABLE(TUMBLE(TABLE events_d, DESCRIPTOR(ts), INTERVAL '30' SECOND))) WHERE rn <= 2;
