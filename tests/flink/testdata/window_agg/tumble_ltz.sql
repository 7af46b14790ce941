-- compare: kinds
CREATE TABLE events_ltz (k STRING, v INT, ts TIMESTAMP(3), rt AS CAST(ts AS TIMESTAMP_LTZ(3)), WATERMARK FOR rt AS rt) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/events.jsonl', 'format' = 'json');
CREATE TABLE rt (a INT, d STRING, e INT) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/rt.jsonl', 'format' = 'json');
SET 'table.local-time-zone' = 'America/New_York';
SELECT k, window_start, window_end, window_time, COUNT(*) AS n FROM TABLE(TUMBLE(TABLE events_ltz, DESCRIPTOR(rt), INTERVAL '1' HOUR)) GROUP BY k, window_start, window_end, window_time;
