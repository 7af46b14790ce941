-- compare: kinds
CREATE TABLE events (k STRING, v INT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/events.jsonl', 'format' = 'json');
SELECT k, HOP_START(ts, INTERVAL '5' SECOND, INTERVAL '10' SECOND) AS ws, HOP_END(ts, INTERVAL '5' SECOND, INTERVAL '10' SECOND) AS we, SUM(v) AS s FROM events GROUP BY k, HOP(ts, INTERVAL '5' SECOND, INTERVAL '10' SECOND);
