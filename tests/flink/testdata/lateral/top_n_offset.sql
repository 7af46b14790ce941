-- differs: Flink cannot plan it
CREATE TABLE emp (id INT, name STRING, dept_id INT, salary DECIMAL(10, 2), boss INT) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/emp.jsonl', 'format' = 'json');
SELECT d.id, x.name FROM (SELECT DISTINCT dept_id AS id FROM emp) d, LATERAL (SELECT name, salary FROM emp WHERE dept_id = d.id ORDER BY salary DESC, name LIMIT 1 OFFSET 1) AS x;
