-- differs: Flink fails while it plans
CREATE TABLE emp (id INT, name STRING, dept_id INT, salary DECIMAL(10, 2), boss INT) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/emp.jsonl', 'format' = 'json');
CREATE TABLE dept (id INT, name STRING, budget BIGINT) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/dept.jsonl', 'format' = 'json');
SELECT dept_id, (SELECT MAX(d.name) FROM dept d WHERE d.id = e.dept_id) AS dn, COUNT(*) AS n FROM emp e GROUP BY dept_id;
