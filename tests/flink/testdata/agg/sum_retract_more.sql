-- compare: changelog
-- More is taken back than was there: counts go below zero, and come back.
CREATE TABLE t (k INT, d DECIMAL(10, 2), i INT, f DOUBLE) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/retract_more.json', 'format' = 'changelog-json');
SELECT k, SUM(d) AS sd, SUM(i) AS si, SUM(f) AS sf, COUNT(d) AS n FROM t GROUP BY k;
SELECT k, AVG(d) AS ad, AVG(i) AS ai, AVG(f) AS af FROM t GROUP BY k;
SELECT SUM(d) AS sd, AVG(d) AS ad, COUNT(*) AS n FROM t WHERE k = 1;
