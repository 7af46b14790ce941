CREATE TABLE x (id INT, WATERMARK FOR id AS id) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/nums.jsonl', 'format' = 'json');
SELECT * FROM x;
