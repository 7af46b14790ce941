-- Two rows of a new key in one bundle: what is left is the same.
CREATE TABLE chg (id INT, g STRING, v INT) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/chg.jsonl', 'format' = 'changelog-json');
SET 'table.exec.mini-batch.enabled' = 'true';
SET 'table.exec.mini-batch.allow-latency' = '10 s';
SET 'table.exec.mini-batch.size' = '1000';
SELECT g, COUNT(*) AS n, MAX(v) AS hi FROM chg GROUP BY g;
