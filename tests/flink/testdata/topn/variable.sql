CREATE TABLE lt (a INT, b STRING, c INT) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/lt.jsonl', 'format' = 'json');
SELECT a, c FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY b ORDER BY c) AS rn FROM lt) WHERE rn <= a;
