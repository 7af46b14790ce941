-- compare: changelog
CREATE TABLE chg (id INT, g STRING, v INT) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/chg.jsonl', 'format' = 'changelog-json');
SELECT g, AVG(v) AS ai, AVG(CAST(v AS BIGINT)) AS ab, AVG(CAST(v AS DOUBLE)) AS ad, AVG(CAST(v AS DECIMAL(10, 2))) AS an FROM chg GROUP BY g;
