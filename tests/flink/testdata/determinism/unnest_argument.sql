SET 'table.optimizer.non-deterministic-update.strategy' = 'TRY_RESOLVE';
CREATE TABLE chg (id INT, g STRING, v INT) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/chg.jsonl', 'format' = 'changelog-json');
CREATE TABLE s (id INT, x INT) WITH ('connector' = 'memory', 'changelog' = 'retract');
INSERT INTO s SELECT id, x FROM chg CROSS JOIN UNNEST(ARRAY[v, CHAR_LENGTH(UUID())]) AS t(x);
