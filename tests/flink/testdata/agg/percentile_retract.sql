-- compare: changelog
CREATE TABLE chg (id INT, g STRING, v INT) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/chg.jsonl', 'format' = 'changelog-json');
SELECT g, PERCENTILE(v, 0.5) AS p, PERCENTILE(v, ARRAY[0.25, 1]) AS q FROM chg GROUP BY g;
