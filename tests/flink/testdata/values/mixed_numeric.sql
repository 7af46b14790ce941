-- compare: changelog
SELECT x FROM (VALUES (1), (2.5), (3e0)) AS t(x);
