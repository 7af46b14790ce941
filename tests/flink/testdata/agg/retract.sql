-- compare: changelog
CREATE TABLE chg (id INT, g STRING, v INT) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/chg.jsonl', 'format' = 'changelog-json');
SELECT g, COUNT(*) AS n, SUM(v) AS s, COUNT(v) AS c FROM chg GROUP BY g;
