SET 'table.optimizer.non-deterministic-update.strategy' = 'TRY_RESOLVE';
CREATE TABLE chg (id INT, g STRING, v INT) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/chg.jsonl', 'format' = 'changelog-json');
CREATE TABLE s (n BIGINT) WITH ('connector' = 'memory', 'changelog' = 'retract');
INSERT INTO s SELECT COUNT(*) FROM chg GROUP BY CHAR_LENGTH(UUID()) + v;
