-- compare: kinds
CREATE TABLE events_d (k STRING, v INT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts - INTERVAL '10' SECOND) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/events.jsonl', 'format' = 'json');
SELECT k, v, ts, window_start FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY k, window_start, window_end ORDER BY ts DESC) AS rn FROM TABLE(HOP(TABLE events_d, DESCRIPTOR(ts), INTERVAL '20' SECOND, INTERVAL '40' SECOND))) WHERE rn = 1;
