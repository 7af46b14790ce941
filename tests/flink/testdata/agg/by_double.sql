CREATE TABLE nums (id INT, i INT, b BIGINT, d DECIMAL(10, 2), f DOUBLE, s STRING) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/nums.jsonl', 'format' = 'json');
SELECT f, COUNT(*) AS n FROM (SELECT f FROM nums UNION ALL SELECT -0e0 FROM nums WHERE id = 1) GROUP BY f;
