-- compare: kinds
CREATE TABLE clicks (u STRING, page STRING, ts TIMESTAMP(3), WATERMARK FOR ts AS ts - INTERVAL '10' SECOND) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/clicks.jsonl', 'format' = 'json');
SELECT u, SESSION_START(ts, INTERVAL '15' SECOND) AS ws, SESSION_END(ts, INTERVAL '15' SECOND) AS we, COUNT(*) AS n FROM clicks GROUP BY u, SESSION(ts, INTERVAL '15' SECOND);
