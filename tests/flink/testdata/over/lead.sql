-- differs: this engine takes any window over an input that ends, as Flink does in batch mode
CREATE TABLE events_d (k STRING, v INT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts - INTERVAL '10' SECOND) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/events.jsonl', 'format' = 'json');
SELECT k, v, LEAD(v) OVER (PARTITION BY k ORDER BY ts) AS p FROM events_d;
