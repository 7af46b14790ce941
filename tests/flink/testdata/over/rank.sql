-- compare: kinds
-- differs: rows of one time share the rank of the first, as in standard SQL; Flink gives them the rank of the last
CREATE TABLE events_d (k STRING, v INT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts - INTERVAL '10' SECOND) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/events.jsonl', 'format' = 'json');
SELECT k, v, RANK() OVER (PARTITION BY k ORDER BY ts) AS r, DENSE_RANK() OVER (PARTITION BY k ORDER BY ts) AS d FROM events_d;
