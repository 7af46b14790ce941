-- compare: changelog
CREATE TABLE chg_pk (id INT, g STRING, v INT, PRIMARY KEY (id) NOT ENFORCED) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/chg.jsonl', 'format' = 'changelog-json');
SET 'table.optimizer.non-deterministic-update.strategy' = 'TRY_RESOLVE';
CREATE TABLE s (id INT, u INT, PRIMARY KEY (id) NOT ENFORCED) WITH ('connector' = 'memory', 'changelog' = 'upsert');
INSERT INTO s SELECT id, CHAR_LENGTH(UUID()) FROM chg_pk;
