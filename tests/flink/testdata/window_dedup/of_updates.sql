CREATE TABLE events (k STRING, v INT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/events.jsonl', 'format' = 'json');
CREATE VIEW counts AS SELECT k, ts, COUNT(*) AS n FROM events GROUP BY k, ts;
SELECT k, n FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY k, window_start, window_end ORDER BY ts DESC) AS rn FROM TABLE(TUMBLE(TABLE counts, DESCRIPTOR(ts), INTERVAL '10' SECOND))) WHERE rn = 1;
