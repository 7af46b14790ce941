SET 'table.optimizer.non-deterministic-update.strategy' = 'TRY_RESOLVE';
SET 'table.exec.sink.require-on-conflict' = 'false';
CREATE TABLE chg (id INT, g STRING, v INT) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/chg.jsonl', 'format' = 'changelog-json');
CREATE TABLE s (id INT, n INT, PRIMARY KEY (id) NOT ENFORCED) WITH ('connector' = 'memory', 'changelog' = 'upsert');
INSERT INTO s SELECT id, CHAR_LENGTH(UUID()) FROM chg;
