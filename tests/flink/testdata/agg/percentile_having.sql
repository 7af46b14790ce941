-- compare: changelog
CREATE TABLE emp (id INT, name STRING, dept_id INT, salary DECIMAL(10, 2), boss INT) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/emp.jsonl', 'format' = 'json');
SELECT dept_id, PERCENTILE(salary, 0.5) AS p FROM emp GROUP BY dept_id HAVING PERCENTILE(salary, 0.5) > 6000;
