CREATE TABLE x (id INT, PRIMARY KEY (idd) NOT ENFORCED) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/nums.jsonl', 'format' = 'json');
SELECT * FROM x;
