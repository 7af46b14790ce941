-- compare: changelog
SELECT 1 AS a, 'x' || 'y' AS b, NULL AS c;
