SET 'table.optimizer.non-deterministic-update.strategy' = 'TRY_RESOLVE';
CREATE TABLE chg (id INT, g STRING, v INT, f STRING NOT NULL METADATA FROM 'file.name', PRIMARY KEY (id) NOT ENFORCED) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/chg.jsonl', 'format' = 'changelog-json');
CREATE TABLE s (id INT, f STRING) WITH ('connector' = 'memory', 'changelog' = 'retract');
INSERT INTO s SELECT id, f FROM chg;
