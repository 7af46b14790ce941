-- compare: changelog
SELECT v, rn FROM (SELECT v, ROW_NUMBER() OVER (ORDER BY v) AS rn FROM (VALUES (12), (19), (11)) AS t(v)) WHERE rn <= 2;
