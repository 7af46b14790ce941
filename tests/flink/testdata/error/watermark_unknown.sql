CREATE TABLE x (id INT, WATERMARK FOR ts AS ts) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/nums.jsonl', 'format' = 'json');
SELECT * FROM x;
