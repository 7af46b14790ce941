-- differs: Flink fails while it plans
CREATE TABLE lt (a INT, b STRING, c INT) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/lt.jsonl', 'format' = 'json');
CREATE TABLE rt (a INT, d STRING, e INT) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/rt.jsonl', 'format' = 'json');
SELECT l.b, r.d FROM lt l LEFT JOIN rt r ON l.a = r.a AND l.c IN (SELECT e FROM rt);
