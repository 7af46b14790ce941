-- compare: changelog
-- differs: Flink 2.3 fails to generate code for VALUES of INT and DOUBLE
SELECT x FROM (VALUES (1), (2.5), (3e0)) AS t(x);
