-- compare: changelog
CREATE TABLE nest (id INT, tags ARRAY<STRING>, m MAP<STRING, INT>, items ARRAY<ROW<n STRING, q INT>>, r ROW<p INT, q ROW<z STRING>>) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/nest.jsonl', 'format' = 'json');
CREATE TABLE s (id BIGINT, tags ARRAY<STRING>, r ROW<a BIGINT, b ROW<c STRING>>) WITH ('connector' = 'memory');
INSERT INTO s SELECT id, tags, r FROM nest;
