CREATE TABLE nums (id INT, i INT, b BIGINT, d DECIMAL(10, 2), f DOUBLE, s STRING) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/nums.jsonl', 'format' = 'json');
SELECT x, y FROM (SELECT id, i FROM nums) AS t(x, y) WHERE y IS NOT NULL;
