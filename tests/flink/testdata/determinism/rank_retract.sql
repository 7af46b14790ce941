SET 'table.optimizer.non-deterministic-update.strategy' = 'TRY_RESOLVE';
CREATE TABLE chg (id INT, g STRING, v INT, PRIMARY KEY (id) NOT ENFORCED) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/chg.jsonl', 'format' = 'changelog-json');
CREATE TABLE s (g STRING, id INT, n INT) WITH ('connector' = 'memory', 'changelog' = 'retract');
INSERT INTO s SELECT g, id, n FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY g ORDER BY v DESC) AS rn FROM (SELECT g, id, v, CHAR_LENGTH(UUID()) AS n FROM chg)) WHERE rn <= 2;
