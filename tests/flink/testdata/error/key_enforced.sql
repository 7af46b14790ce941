CREATE TABLE x (id INT, PRIMARY KEY (id)) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/nums.jsonl', 'format' = 'json');
SELECT * FROM x;
