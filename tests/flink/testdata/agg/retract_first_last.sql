-- compare: changelog
CREATE TABLE chg (id INT, g STRING, v INT) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/chg.jsonl', 'format' = 'changelog-json');
SELECT g, FIRST_VALUE(id) AS f, LAST_VALUE(id) AS l FROM chg GROUP BY g;
