-- compare: changelog
-- differs: NULL in VALUES takes the type of its column
SELECT COUNT(*) AS n, SUM(x) AS s FROM (VALUES (1), (2), (NULL)) AS t(x);
