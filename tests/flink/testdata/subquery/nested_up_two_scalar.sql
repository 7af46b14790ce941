-- differs: Flink counts a row once for each combination, more than there are
CREATE TABLE emp (id INT, name STRING, dept_id INT, salary DECIMAL(10, 2), boss INT) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/emp.jsonl', 'format' = 'json');
CREATE TABLE dept (id INT, name STRING, budget BIGINT) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/dept.jsonl', 'format' = 'json');
SELECT d.name, (SELECT COUNT(*) FROM emp e WHERE e.dept_id = d.id AND EXISTS (SELECT 1 FROM emp x WHERE x.boss = e.id AND x.dept_id = d.id)) AS n FROM dept d;
