-- compare: changelog
CREATE TABLE events_ltz (k STRING, v INT, ts TIMESTAMP(3), rt AS CAST(ts AS TIMESTAMP_LTZ(3)), WATERMARK FOR rt AS rt) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/events.jsonl', 'format' = 'json');
CREATE TABLE rt (a INT, d STRING, e INT) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/rt.jsonl', 'format' = 'json');
SET 'table.local-time-zone' = 'Asia/Shanghai';
SELECT k, v, window_start, window_end, window_time FROM TABLE(TUMBLE(TABLE events_ltz, DESCRIPTOR(rt), INTERVAL '1' DAY));
