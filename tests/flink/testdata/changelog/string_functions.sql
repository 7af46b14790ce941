-- compare: changelog
CREATE TABLE nums (id INT, i INT, b BIGINT, d DECIMAL(10, 2), f DOUBLE, s STRING) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/nums.jsonl', 'format' = 'json');
SELECT id, UPPER(s) AS u, CHAR_LENGTH(s) AS n, TRIM(s) AS t, s || '!' AS c, SUBSTRING(s, 2, 3) AS m FROM nums;
