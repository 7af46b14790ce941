-- compare: changelog
CREATE TABLE people (id INT, name STRING, age INT, born DATE) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/people.csv', 'format' = 'csv');
SELECT id, name, age, born FROM people;
