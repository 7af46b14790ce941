-- differs: the connector memory of this engine wants a primary key for upserts
CREATE TABLE events (k STRING, v INT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/events.jsonl', 'format' = 'json');
CREATE TABLE s (k STRING, n BIGINT) WITH ('connector' = 'memory', 'changelog' = 'upsert');
INSERT INTO s SELECT k, COUNT(*) FROM events GROUP BY k;
