-- compare: changelog
CREATE TABLE chg (id INT, g STRING, v INT) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/chg.jsonl', 'format' = 'changelog-json');
SELECT COUNT(*) AS n, MAX(v) AS hi, SUM(v) AS s FROM chg;
