CREATE TABLE lt (a INT, b STRING, c INT) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/lt.jsonl', 'format' = 'json');
CREATE TABLE rt (a INT, d STRING, e INT) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/rt.jsonl', 'format' = 'json');
SELECT l.a, l.n, r.n AS m FROM (SELECT a, COUNT(*) AS n FROM lt GROUP BY a) l FULL JOIN (SELECT a, COUNT(*) AS n FROM rt GROUP BY a) r ON l.a = r.a;
