CREATE TABLE nest (id INT, tags ARRAY<STRING>, m MAP<STRING, INT>, items ARRAY<ROW<n STRING, q INT>>, r ROW<p INT, q ROW<z STRING>>) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/nest.jsonl', 'format' = 'json');
SELECT id, t, i FROM nest LEFT JOIN UNNEST(tags) WITH ORDINALITY AS x(t, i) ON TRUE;
