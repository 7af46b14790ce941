SET 'table.optimizer.non-deterministic-update.strategy' = 'TRY_RESOLVE';
CREATE TABLE events (k STRING, v INT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/events.jsonl', 'format' = 'json');
CREATE TABLE s (k STRING, v INT) WITH ('connector' = 'memory', 'changelog' = 'retract');
INSERT INTO s SELECT k, v FROM events WHERE RAND() >= 0;
