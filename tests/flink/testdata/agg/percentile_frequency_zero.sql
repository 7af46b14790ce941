SELECT PERCENTILE(x, 0.5, f) AS p FROM (VALUES (1, 0), (2, 0)) AS t(x, f);
