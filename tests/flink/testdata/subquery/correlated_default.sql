CREATE TABLE lt (a INT, b STRING, c INT) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/lt.jsonl', 'format' = 'json');
CREATE TABLE rt (a INT, d STRING, e INT) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/rt.jsonl', 'format' = 'json');
SELECT lt.a, (SELECT COALESCE(SUM(rt.e), 6) + 1 FROM rt WHERE lt.a = rt.a) AS z FROM lt;
SELECT lt.a, (SELECT COALESCE(COUNT(rt.e) + SUM(rt.e), 6) + 1 FROM rt WHERE lt.a = rt.a) AS z FROM lt;
SELECT lt.a, (SELECT CASE WHEN SUM(rt.e) IS NULL THEN -1 ELSE 1 END FROM rt WHERE lt.a = rt.a) AS z FROM lt;
SELECT lt.a, (SELECT NULLIF(COUNT(*), 1) FROM rt WHERE lt.a = rt.a) AS z FROM lt;
