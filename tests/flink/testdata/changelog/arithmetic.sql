-- compare: changelog
CREATE TABLE nums (id INT, i INT, b BIGINT, d DECIMAL(10, 2), f DOUBLE, s STRING) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/nums.jsonl', 'format' = 'json');
SELECT id, i + b AS a, i * d AS p, d / 3 AS q, f * i AS fi, MOD(b, 7) AS m, -d AS neg FROM nums WHERE id <> 4;
