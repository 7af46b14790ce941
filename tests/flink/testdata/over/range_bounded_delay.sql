-- compare: kinds
CREATE TABLE events_d (k STRING, v INT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts - INTERVAL '10' SECOND) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/events.jsonl', 'format' = 'json');
SELECT k, v, COUNT(v) OVER (PARTITION BY k ORDER BY ts RANGE BETWEEN INTERVAL '8' SECOND PRECEDING AND CURRENT ROW) AS n FROM events_d;
