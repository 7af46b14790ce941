-- compare: changelog
CREATE TABLE emp (id INT, name STRING, dept_id INT, salary DECIMAL(10, 2), boss INT) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/emp.jsonl', 'format' = 'json');
SELECT PERCENTILE(salary, 0.5) AS p, PERCENTILE(salary, ARRAY[0.1, 0.9]) AS q FROM emp GROUP BY dept_id;
