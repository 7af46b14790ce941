-- compare: changelog
SELECT x, CHAR_LENGTH(x) AS n FROM (VALUES ('a'), ('abc'), ('')) AS t(x);
