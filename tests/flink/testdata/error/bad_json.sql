CREATE TABLE x (id INT) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/people.csv', 'format' = 'json');
SELECT * FROM x;
