CREATE TABLE x (id INT) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/people.csv', 'format' = 'json', 'json.ignore-parse-errors' = 'true');
SELECT * FROM x;
