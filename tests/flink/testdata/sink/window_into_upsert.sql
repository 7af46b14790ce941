-- compare: kinds
CREATE TABLE events (k STRING, v INT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/events.jsonl', 'format' = 'json');
SET 'table.exec.sink.require-on-conflict' = 'false';
CREATE TABLE s (k STRING, ws TIMESTAMP(3), n BIGINT, PRIMARY KEY (k, ws) NOT ENFORCED) WITH ('connector' = 'memory', 'changelog' = 'upsert');
INSERT INTO s SELECT k, window_start, COUNT(*) FROM TABLE(TUMBLE(TABLE events, DESCRIPTOR(ts), INTERVAL '10' SECOND)) WHERE k IS NOT NULL GROUP BY k, window_start, window_end;
