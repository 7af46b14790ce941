CREATE TABLE emp (id INT, name STRING, dept_id INT, salary DECIMAL(10, 2), boss INT) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/emp.jsonl', 'format' = 'json');
SELECT name FROM emp WHERE boss NOT IN (SELECT boss FROM emp WHERE dept_id = 20);
