SET 'table.optimizer.non-deterministic-update.strategy' = 'TRY_RESOLVE';
CREATE TABLE chg (id INT, g STRING, v INT) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/chg.jsonl', 'format' = 'changelog-json');
CREATE TABLE lt (a INT, b STRING, c INT) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/lt.jsonl', 'format' = 'json');
CREATE TABLE rt (a INT, d STRING, e INT) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/rt.jsonl', 'format' = 'json');
CREATE TABLE s (id INT, b STRING) WITH ('connector' = 'memory', 'changelog' = 'retract');
INSERT INTO s SELECT id, b FROM chg JOIN lt ON id = a AND c + v + RAND() >= -1000;
