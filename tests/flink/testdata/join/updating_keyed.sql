CREATE TABLE chg_pk (id INT, g STRING, v INT, PRIMARY KEY (id) NOT ENFORCED) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/chg.jsonl', 'format' = 'changelog-json');
CREATE TABLE chg2_pk (id INT, g STRING, v INT, PRIMARY KEY (id) NOT ENFORCED) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/chg3.jsonl', 'format' = 'changelog-json');
SELECT l.id, l.v, r.v AS w FROM chg_pk l LEFT JOIN chg2_pk r ON l.id = r.id;
