-- compare: changelog
CREATE TABLE early (k STRING, v INT) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/early.jsonl', 'format' = 'changelog-json');
SELECT k, MAX(v) AS hi FROM early WHERE k = 'b' GROUP BY k;
