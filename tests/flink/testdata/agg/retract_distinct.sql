-- compare: changelog
CREATE TABLE chg (id INT, g STRING, v INT) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/chg.jsonl', 'format' = 'changelog-json');
SELECT g, COUNT(DISTINCT v) AS n, SUM(DISTINCT v) AS s FROM chg GROUP BY g;
