-- compare: kinds
CREATE TABLE rt (a INT, d STRING, e INT) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/rt.jsonl', 'format' = 'json');
SET 'table.local-time-zone' = 'America/Los_Angeles';
CREATE TABLE dst (id INT, rt AS TO_TIMESTAMP_LTZ(1710060000000 + id * 1800000, 3), WATERMARK FOR rt AS rt) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/nums.jsonl', 'format' = 'json');
SELECT window_start, window_end, COUNT(*) AS n FROM TABLE(TUMBLE(TABLE dst, DESCRIPTOR(rt), INTERVAL '1' HOUR)) GROUP BY window_start, window_end;
