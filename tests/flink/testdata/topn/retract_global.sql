-- compare: changelog
CREATE TABLE chg (id INT, g STRING, v INT) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/chg.jsonl', 'format' = 'changelog-json');
SELECT id, v, rn FROM (SELECT *, ROW_NUMBER() OVER (ORDER BY v, id) AS rn FROM chg) WHERE rn <= 3;
