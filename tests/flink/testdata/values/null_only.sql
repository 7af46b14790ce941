-- compare: changelog
SELECT x FROM (VALUES (NULL), (1)) AS t(x);
