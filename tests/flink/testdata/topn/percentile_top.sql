CREATE TABLE emp (id INT, name STRING, dept_id INT, salary DECIMAL(10, 2), boss INT) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/emp.jsonl', 'format' = 'json');
SELECT * FROM (SELECT dept_id, p, ROW_NUMBER() OVER (ORDER BY p DESC) AS rn FROM (SELECT dept_id, PERCENTILE(salary, 0.5) AS p FROM emp WHERE dept_id IS NOT NULL GROUP BY dept_id)) WHERE rn <= 2;
