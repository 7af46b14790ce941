-- compare: changelog
CREATE TABLE dbz (id INT, name STRING, v INT, PRIMARY KEY (id) NOT ENFORCED) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/dbz.jsonl', 'format' = 'debezium-json');
SELECT * FROM dbz;
