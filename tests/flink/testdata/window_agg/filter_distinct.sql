-- compare: kinds
CREATE TABLE events_d (k STRING, v INT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts - INTERVAL '10' SECOND) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/events.jsonl', 'format' = 'json');
SELECT window_start, COUNT(DISTINCT k) FILTER (WHERE v > 3) AS dk, SUM(DISTINCT v) AS dv, SUM(v) FILTER (WHERE k = 'b') AS sb FROM TABLE(TUMBLE(TABLE events_d, DESCRIPTOR(ts), INTERVAL '20' SECOND)) GROUP BY window_start, window_end;
