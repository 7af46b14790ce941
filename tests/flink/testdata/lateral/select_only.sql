-- differs: Flink cannot plan it
CREATE TABLE dept (id INT, name STRING, budget BIGINT) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/dept.jsonl', 'format' = 'json');
SELECT d.name, x.y FROM dept d, LATERAL (SELECT d.budget / 10 AS y) AS x;
