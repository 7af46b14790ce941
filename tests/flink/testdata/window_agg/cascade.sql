-- compare: kinds
CREATE TABLE events (k STRING, v INT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/events.jsonl', 'format' = 'json');
CREATE VIEW small AS SELECT k, window_time AS wt, SUM(v) AS s FROM TABLE(TUMBLE(TABLE events, DESCRIPTOR(ts), INTERVAL '5' SECOND)) GROUP BY k, window_start, window_end, window_time;
SELECT window_start, window_end, SUM(s) AS total, COUNT(*) AS n FROM TABLE(TUMBLE(TABLE small, DESCRIPTOR(wt), INTERVAL '20' SECOND)) GROUP BY window_start, window_end;
