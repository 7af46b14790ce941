SET 'table.optimizer.non-deterministic-update.strategy' = 'TRY_RESOLVE';
CREATE TABLE events (k STRING, v INT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/events.jsonl', 'format' = 'json');
CREATE TABLE s (n BIGINT) WITH ('connector' = 'memory', 'changelog' = 'retract');
INSERT INTO s SELECT n FROM (SELECT u, COUNT(*) AS n FROM (SELECT CHAR_LENGTH(UUID()) AS u, v FROM events) GROUP BY u);
