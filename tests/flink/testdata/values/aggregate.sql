-- compare: changelog
SELECT COUNT(*) AS n, SUM(x) AS s FROM (VALUES (1), (2), (NULL)) AS t(x);
