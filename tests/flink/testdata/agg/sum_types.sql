CREATE TABLE nums (id INT, i INT, b BIGINT, d DECIMAL(10, 2), f DOUBLE, s STRING) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/nums.jsonl', 'format' = 'json');
SELECT SUM(CAST(i AS TINYINT)) AS t, SUM(d) AS d, SUM(f) AS f, SUM(CAST(f AS FLOAT)) AS r FROM nums WHERE id <> 4;
