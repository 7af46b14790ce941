-- compare: changelog
-- INT to BIGINT keeps a key a key.
CREATE TABLE chg_pk (id INT, g STRING, v INT, PRIMARY KEY (id) NOT ENFORCED) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/chg.jsonl', 'format' = 'changelog-json');
CREATE TABLE s (id BIGINT, v INT, PRIMARY KEY (id) NOT ENFORCED) WITH ('connector' = 'memory', 'changelog' = 'upsert');
INSERT INTO s SELECT CAST(id AS BIGINT), v FROM chg_pk;
