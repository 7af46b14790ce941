-- mode: batch
CREATE TABLE emp (id INT, name STRING, dept_id INT, salary DECIMAL(10, 2), boss INT) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/emp.jsonl', 'format' = 'json');
SELECT dept_id, PERCENTILE(salary, 0.75) AS p, PERCENTILE(salary, 0.5, id) AS q FROM emp GROUP BY dept_id;
