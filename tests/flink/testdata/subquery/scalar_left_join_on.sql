CREATE TABLE lt (a INT, b STRING, c INT) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/lt.jsonl', 'format' = 'json');
CREATE TABLE rt (a INT, d STRING, e INT) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/rt.jsonl', 'format' = 'json');
CREATE TABLE dept (id INT, name STRING, budget BIGINT) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/dept.jsonl', 'format' = 'json');
SELECT l.b, r.d FROM lt l LEFT JOIN rt r ON l.a = r.a AND r.e > (SELECT MIN(id) FROM dept);
