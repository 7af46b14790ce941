-- compare: kinds
-- differs: the default stands where there is no row; Flink also puts it in the place of a NULL
CREATE TABLE events_d (k STRING, v INT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts - INTERVAL '10' SECOND) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/events.jsonl', 'format' = 'json');
SELECT k, v, LAG(v, 1, -1) OVER (PARTITION BY k ORDER BY ts) AS p FROM events_d;
