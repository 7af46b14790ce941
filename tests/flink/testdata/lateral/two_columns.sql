CREATE TABLE emp (id INT, name STRING, dept_id INT, salary DECIMAL(10, 2), boss INT) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/emp.jsonl', 'format' = 'json');
SELECT e.name, x.n FROM emp e, LATERAL (SELECT COUNT(*) AS n FROM emp z WHERE z.dept_id = e.dept_id AND z.boss = e.boss) AS x;
