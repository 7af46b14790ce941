CREATE TABLE chg (id INT, g STRING, v INT) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/chg.jsonl', 'format' = 'changelog-json');
CREATE TABLE s (id INT, g STRING, v INT) WITH ('connector' = 'memory');
INSERT INTO s SELECT * FROM chg;
