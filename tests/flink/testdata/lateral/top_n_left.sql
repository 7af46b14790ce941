-- differs: Flink cannot plan it
CREATE TABLE emp (id INT, name STRING, dept_id INT, salary DECIMAL(10, 2), boss INT) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/emp.jsonl', 'format' = 'json');
CREATE TABLE dept (id INT, name STRING, budget BIGINT) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/dept.jsonl', 'format' = 'json');
SELECT d.name, x.name, x.salary FROM dept d LEFT JOIN LATERAL (SELECT name, salary FROM emp WHERE dept_id = d.id ORDER BY salary DESC, name LIMIT 1) AS x ON TRUE;
