CREATE TABLE x (id INT, id STRING) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/nums.jsonl', 'format' = 'json');
SELECT * FROM x;
