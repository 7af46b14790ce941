CREATE TABLE emp (id INT, name STRING, dept_id INT, salary DECIMAL(10, 2), boss INT) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/emp.jsonl', 'format' = 'json');
SELECT e.name, b.name AS boss FROM emp e LEFT JOIN emp b ON e.boss = b.id;
