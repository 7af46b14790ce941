CREATE TABLE lt (a INT, b STRING, c INT) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/lt.jsonl', 'format' = 'json');
CREATE TABLE dept (id INT, name STRING, budget BIGINT) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/dept.jsonl', 'format' = 'json');
SELECT l.b, d.name FROM lt l JOIN dept d ON l.a * 10 = d.id AND d.budget > 10;
