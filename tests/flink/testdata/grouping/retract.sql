CREATE TABLE chg (id INT, g STRING, v INT) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/chg.jsonl', 'format' = 'changelog-json');
SELECT g, id, SUM(v) AS s FROM chg GROUP BY ROLLUP (g, id);
