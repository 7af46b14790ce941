CREATE TABLE x (id INT) WITH ('connector' = 'filesystem', 'format' = 'json');
SELECT * FROM x;
