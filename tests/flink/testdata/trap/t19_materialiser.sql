-- compare: changelog
SET 'table.exec.sink.require-on-conflict' = 'false';
CREATE TABLE early (k STRING, v INT) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/early.jsonl', 'format' = 'changelog-json');
CREATE TABLE s (k STRING, v INT, PRIMARY KEY (k) NOT ENFORCED) WITH ('connector' = 'memory', 'changelog' = 'upsert');
INSERT INTO s SELECT k, v FROM early WHERE k IN ('b', 'e');
