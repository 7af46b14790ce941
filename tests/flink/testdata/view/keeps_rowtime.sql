-- compare: kinds
CREATE TABLE events (k STRING, v INT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/events.jsonl', 'format' = 'json');
CREATE VIEW v1 AS SELECT UPPER(k) AS kk, v, ts AS t FROM events WHERE v > 0;
SELECT kk, window_end, SUM(v) AS s FROM TABLE(TUMBLE(TABLE v1, DESCRIPTOR(t), INTERVAL '20' SECOND)) GROUP BY kk, window_start, window_end;
