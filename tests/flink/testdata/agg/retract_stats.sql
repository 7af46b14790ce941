CREATE TABLE chg (id INT, g STRING, v INT) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/chg.jsonl', 'format' = 'changelog-json');
SELECT g, STDDEV_POP(v) AS sp, VAR_POP(v) AS vp FROM chg GROUP BY g;
