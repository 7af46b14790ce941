-- compare: changelog
CREATE TABLE chg (id INT, g STRING, v INT) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/chg.jsonl', 'format' = 'changelog-json');
SELECT g, LISTAGG(CAST(id AS STRING)) AS l, LISTAGG(CAST(v AS STRING), ';') AS m FROM chg GROUP BY g;
