CREATE TABLE emp (id INT, name STRING, dept_id INT, salary DECIMAL(10, 2), boss INT) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/emp.jsonl', 'format' = 'json');
CREATE TABLE dept (id INT, name STRING, budget BIGINT) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/dept.jsonl', 'format' = 'json');
SELECT d.name, (SELECT MAX(e.salary) FROM emp e WHERE e.dept_id = d.id AND e.salary < (SELECT MAX(x.salary) FROM emp x WHERE x.dept_id = e.dept_id)) AS n FROM dept d;
