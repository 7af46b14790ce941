CREATE TABLE emp (id INT, name STRING, dept_id INT, salary DECIMAL(10, 2), boss INT) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/emp.jsonl', 'format' = 'json');
SELECT e.name, (SELECT COUNT(*) FROM emp x WHERE x.dept_id = e.dept_id AND x.salary > e.salary) AS higher FROM emp e;
