CREATE TABLE people (id INT, name STRING, age INT, born DATE) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/people.csv', 'format' = 'csv');
SELECT MAX(born) AS b, MIN(born) AS m FROM people;
