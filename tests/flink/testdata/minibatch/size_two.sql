CREATE TABLE events (k STRING, v INT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/events.jsonl', 'format' = 'json');
SET 'table.exec.mini-batch.enabled' = 'true';
SET 'table.exec.mini-batch.allow-latency' = '10 s';
SET 'table.exec.mini-batch.size' = '2';
SELECT k, COUNT(*) AS n, MAX(v) AS hi FROM events GROUP BY k;
