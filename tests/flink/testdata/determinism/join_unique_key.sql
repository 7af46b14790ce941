SET 'table.optimizer.non-deterministic-update.strategy' = 'TRY_RESOLVE';
CREATE TABLE chg (id INT, g STRING, v INT, PRIMARY KEY (id) NOT ENFORCED) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/chg.jsonl', 'format' = 'changelog-json');
CREATE TABLE lt (a INT, b STRING, c INT) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/lt.jsonl', 'format' = 'json');
CREATE TABLE rt (a INT, d STRING, e INT) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/rt.jsonl', 'format' = 'json');
CREATE TABLE s (id INT, b STRING, n INT, PRIMARY KEY (id) NOT ENFORCED) WITH ('connector' = 'memory', 'changelog' = 'upsert');
INSERT INTO s SELECT id, LAST_VALUE(b), 1 FROM (SELECT id, v, CHAR_LENGTH(UUID()) AS n FROM chg) JOIN lt ON id = a GROUP BY id;
