-- compare: changelog
CREATE TABLE events (k STRING, v INT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/events.jsonl', 'format' = 'json');
SET 'table.exec.sink.require-on-conflict' = 'false';
CREATE TABLE s (n BIGINT, k STRING, PRIMARY KEY (n) NOT ENFORCED) WITH ('connector' = 'memory', 'changelog' = 'upsert');
INSERT INTO s SELECT n, k FROM (SELECT k, COUNT(*) AS n FROM events WHERE k IS NOT NULL GROUP BY k);
