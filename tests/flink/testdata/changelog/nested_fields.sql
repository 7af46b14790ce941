-- compare: changelog
CREATE TABLE nest (id INT, tags ARRAY<STRING>, m MAP<STRING, INT>, items ARRAY<ROW<n STRING, q INT>>, r ROW<p INT, q ROW<z STRING>>) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/nest.jsonl', 'format' = 'json');
SELECT id, r.p AS p, r.q.z AS z, tags[1] AS t1, m['x'] AS mx, CARDINALITY(items) AS n FROM nest;
