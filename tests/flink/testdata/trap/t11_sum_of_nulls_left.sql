-- compare: changelog
CREATE TABLE early (k STRING, v INT) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/early.jsonl', 'format' = 'changelog-json');
SELECT k, SUM(v) AS s, AVG(v) AS a, COUNT(v) AS c, COUNT(*) AS n FROM early WHERE k = 'c' GROUP BY k;
