-- compare: changelog
CREATE TABLE early (k STRING, v INT) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/early.jsonl', 'format' = 'changelog-json');
SELECT k, COUNT(*) AS n, SUM(v) AS s FROM early GROUP BY k;
