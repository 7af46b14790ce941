CREATE TABLE nest (id INT, tags ARRAY<STRING>, m MAP<STRING, INT>, items ARRAY<ROW<n STRING, q INT>>, r ROW<p INT, q ROW<z STRING>>) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/nest.jsonl', 'format' = 'json');
SELECT id, nn, qq FROM nest CROSS JOIN UNNEST(items) AS x(nn, qq);
