CREATE TABLE lt (a INT, b STRING, c INT) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/lt.jsonl', 'format' = 'json');
SELECT l.b, v.z FROM lt l JOIN (VALUES (1, 'one'), (2, 'two')) AS v(a, z) ON l.a = v.a;
