CREATE TABLE x (id INT) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/nums.jsonl', 'format' = 'json');
CREATE TABLE IF NOT EXISTS x (other STRING) WITH ('connector' = 'print');
SELECT id FROM x;
