-- compare: changelog
-- differs: NULL in VALUES takes the type of its column
SELECT x FROM (VALUES (NULL), (1)) AS t(x);
