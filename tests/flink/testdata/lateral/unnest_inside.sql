CREATE TABLE dept (id INT, name STRING, budget BIGINT) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/dept.jsonl', 'format' = 'json');
SELECT d.name, x.n FROM dept d, LATERAL (SELECT u.n FROM UNNEST(ARRAY[d.id, d.id + 1]) AS u(n)) AS x;
