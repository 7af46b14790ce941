-- differs: Flink cannot plan it
CREATE TABLE dept (id INT, name STRING, budget BIGINT) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/dept.jsonl', 'format' = 'json');
SELECT d.name, x.y FROM dept d, LATERAL (VALUES (d.id), (d.id + 1)) AS x(y);
