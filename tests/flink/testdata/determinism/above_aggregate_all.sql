SET 'table.optimizer.non-deterministic-update.strategy' = 'TRY_RESOLVE';
CREATE TABLE events (k STRING, v INT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/events.jsonl', 'format' = 'json');
CREATE TABLE s (k STRING, n BIGINT, u INT) WITH ('connector' = 'memory', 'changelog' = 'retract');
INSERT INTO s SELECT k, COUNT(*), CHAR_LENGTH(UUID()) FROM events GROUP BY k;
