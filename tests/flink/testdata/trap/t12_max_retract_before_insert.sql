-- compare: changelog
CREATE TABLE early (k STRING, v INT) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/early.jsonl', 'format' = 'changelog-json');
SELECT MAX(v) AS hi, MIN(v) AS lo, COUNT(DISTINCT v) AS d FROM early WHERE k = 'd';
