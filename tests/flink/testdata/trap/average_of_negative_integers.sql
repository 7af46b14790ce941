SELECT AVG(v) AS a FROM (VALUES (-4), (-3)) AS t(v);
