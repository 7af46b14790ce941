-- compare: kinds
CREATE TABLE events_d (k STRING, v INT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts - INTERVAL '10' SECOND) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/events.jsonl', 'format' = 'json');
SELECT k, v, SUM(v) OVER w AS s, COUNT(*) OVER w AS n, MIN(v) OVER w AS lo, AVG(v) OVER w AS a FROM events_d WINDOW w AS (PARTITION BY k ORDER BY ts ROWS BETWEEN 2 PRECEDING AND CURRENT ROW);
