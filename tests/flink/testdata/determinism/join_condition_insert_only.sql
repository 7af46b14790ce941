SET 'table.optimizer.non-deterministic-update.strategy' = 'TRY_RESOLVE';
CREATE TABLE lt (a INT, b STRING, c INT) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/lt.jsonl', 'format' = 'json');
CREATE TABLE rt (a INT, d STRING, e INT) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/rt.jsonl', 'format' = 'json');
CREATE TABLE s (b STRING, d STRING) WITH ('connector' = 'memory', 'changelog' = 'retract');
INSERT INTO s SELECT b, d FROM lt JOIN rt ON lt.a = rt.a AND c + e + RAND() >= 0;
