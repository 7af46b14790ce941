-- differs: Flink takes UNIX_TIMESTAMP of a string for a clock (FLINK-41637)
SET 'table.optimizer.non-deterministic-update.strategy' = 'TRY_RESOLVE';
CREATE TABLE chg (id INT, g STRING, v INT) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/chg.jsonl', 'format' = 'changelog-json');
CREATE TABLE s (id INT, v INT) WITH ('connector' = 'memory', 'changelog' = 'retract');
INSERT INTO s SELECT id, v FROM chg WHERE UNIX_TIMESTAMP('2024-01-01 00:00:00') > v;
