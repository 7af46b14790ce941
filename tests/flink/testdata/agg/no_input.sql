-- compare: changelog
-- An aggregate without GROUP BY over no rows: none in streaming.
CREATE TABLE t (x INT, s STRING) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/none.csv', 'format' = 'csv');
SELECT COUNT(*) AS n, SUM(x) AS s FROM t;
SELECT COUNT(*) AS n FROM (VALUES (1), (2)) AS v(x) WHERE x > 5;
SELECT x, COUNT(*) AS n FROM t GROUP BY x;
