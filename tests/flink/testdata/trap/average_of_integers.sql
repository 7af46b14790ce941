SELECT AVG(v) AS a FROM (VALUES (4), (2), (5)) AS t(v);
