CREATE TABLE x (id INT) WITH ('connector' = 'print');
CREATE TABLE x (id INT) WITH ('connector' = 'print');
