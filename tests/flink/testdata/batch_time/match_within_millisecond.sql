-- mode: batch
-- differs: Flink compares milliseconds, and takes rows of one millisecond as they come; here they are in the order of their time
SELECT * FROM (SELECT k, CAST(t AS TIMESTAMP(6)) AS t, v FROM (VALUES ('a', '2024-03-01 10:00:00.000003', 3), ('a', '2024-03-01 10:00:00.000001', 1), ('a', '2024-03-01 10:00:00.000002', 2), ('a', '2024-03-01 10:00:00.000004', 1)) AS x (k, t, v)) MATCH_RECOGNIZE (PARTITION BY k ORDER BY t MEASURES A.v AS a, B.v AS b, B.t AS t PATTERN (A B) DEFINE B AS B.v > A.v) AS m;
