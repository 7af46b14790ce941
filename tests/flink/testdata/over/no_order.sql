-- differs: this engine takes any window over an input that ends, as Flink does in batch mode
CREATE TABLE events (k STRING, v INT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/events.jsonl', 'format' = 'json');
SELECT k, SUM(v) OVER (PARTITION BY k) AS s FROM events;
