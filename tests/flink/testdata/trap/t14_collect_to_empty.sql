-- compare: changelog
CREATE TABLE early (k STRING, v INT) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/early.jsonl', 'format' = 'changelog-json');
SELECT COLLECT(v) AS c, ARRAY_AGG(v) AS a, LISTAGG(CAST(v AS STRING)) AS l, COUNT(*) AS n FROM early WHERE k = 'c' OR k = 'f';
