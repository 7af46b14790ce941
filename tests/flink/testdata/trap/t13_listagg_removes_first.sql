-- compare: changelog
CREATE TABLE early (k STRING, v INT) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/early.jsonl', 'format' = 'changelog-json');
SELECT k, LISTAGG(CAST(v AS STRING)) AS l, ARRAY_AGG(v) AS a FROM early WHERE k = 'e' GROUP BY k;
