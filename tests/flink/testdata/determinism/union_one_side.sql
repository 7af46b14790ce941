SET 'table.optimizer.non-deterministic-update.strategy' = 'TRY_RESOLVE';
CREATE TABLE chg (id INT, g STRING, v INT) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/chg.jsonl', 'format' = 'changelog-json');
CREATE TABLE events (k STRING, v INT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/events.jsonl', 'format' = 'json');
CREATE TABLE s (id INT, n INT) WITH ('connector' = 'memory', 'changelog' = 'retract');
INSERT INTO s SELECT id, v FROM chg UNION ALL SELECT v, CHAR_LENGTH(UUID()) FROM events;
