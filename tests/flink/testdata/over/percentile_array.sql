CREATE TABLE events (k STRING, v INT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts - INTERVAL '5' SECOND) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/events.jsonl', 'format' = 'json');
SELECT k, v, PERCENTILE(v, ARRAY[0, 0.5]) OVER (PARTITION BY k ORDER BY ts) AS p FROM events;
