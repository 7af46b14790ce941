CREATE TABLE emp (id INT, name STRING, dept_id INT, salary DECIMAL(10, 2), boss INT) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/emp.jsonl', 'format' = 'json');
CREATE TABLE dept (id INT, name STRING, budget BIGINT) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/dept.jsonl', 'format' = 'json');
SELECT e.name, d.name AS dept, b.name AS boss FROM emp e JOIN dept d ON e.dept_id = d.id LEFT JOIN emp b ON e.boss = b.id;
