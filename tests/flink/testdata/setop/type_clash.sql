CREATE TABLE lt (a INT, b STRING, c INT) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/lt.jsonl', 'format' = 'json');
CREATE TABLE nest (id INT, tags ARRAY<STRING>, m MAP<STRING, INT>, items ARRAY<ROW<n STRING, q INT>>, r ROW<p INT, q ROW<z STRING>>) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/nest.jsonl', 'format' = 'json');
SELECT a FROM lt UNION ALL SELECT tags FROM nest;
