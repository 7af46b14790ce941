CREATE TABLE x (id INT) WITH ('connector' = 'nope');
SELECT * FROM x;
