SELECT PERCENTILE(x, 0.5, f) AS p FROM (VALUES (1, 1), (2, 5), (4, 2)) AS t(x, f);
