-- compare: changelog
CREATE TABLE nums (id INT, i INT, b BIGINT, d DECIMAL(10, 2), f DOUBLE, s STRING) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/nums.jsonl', 'format' = 'json');
SELECT id, i > 0 AS p, i > 0 OR id > 2 AS o, NOT (i > 0) AS n, i IS NULL AS z, i = b AS e, i IS DISTINCT FROM id AS d FROM nums;
