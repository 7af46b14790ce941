-- compare: changelog
CREATE TABLE nums (id INT, i INT, b BIGINT, d DECIMAL(10, 2), f DOUBLE, s STRING) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/nums.jsonl', 'format' = 'json');
SELECT id, CASE WHEN i > 0 THEN 'pos' WHEN i < 0 THEN 'neg' END AS c, COALESCE(i, -1) AS d, NULLIF(id, 2) AS e, IF(i IS NULL, 'n', s) AS f FROM nums;
