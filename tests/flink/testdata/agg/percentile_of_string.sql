SELECT PERCENTILE(x, 0.5) AS p FROM (VALUES ('a'), ('b')) AS t(x);
