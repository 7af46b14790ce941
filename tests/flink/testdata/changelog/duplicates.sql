-- compare: changelog
CREATE TABLE chg_pk (id INT, g STRING, v INT, PRIMARY KEY (id) NOT ENFORCED) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/chg.jsonl', 'format' = 'changelog-json');
SET 'table.exec.source.cdc-events-duplicate' = 'true';
SELECT id, v FROM chg_pk;
