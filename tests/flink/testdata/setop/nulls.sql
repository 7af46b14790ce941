CREATE TABLE lt (a INT, b STRING, c INT) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/lt.jsonl', 'format' = 'json');
SELECT CAST(NULL AS INT) AS x UNION SELECT a FROM lt WHERE a IS NULL;
