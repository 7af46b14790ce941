-- compare: changelog
SELECT x + 1 AS y, z FROM (VALUES (1, 'a'), (CAST(NULL AS INT), 'b')) AS t(x, z);
