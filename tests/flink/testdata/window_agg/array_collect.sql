-- compare: kinds
CREATE TABLE events_d (k STRING, v INT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts - INTERVAL '10' SECOND) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/events.jsonl', 'format' = 'json');
SELECT window_start, ARRAY_AGG(v) AS a, COLLECT(k) AS c FROM TABLE(TUMBLE(TABLE events_d, DESCRIPTOR(ts), INTERVAL '30' SECOND)) GROUP BY window_start, window_end;
