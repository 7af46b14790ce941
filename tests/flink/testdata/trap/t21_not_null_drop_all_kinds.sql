-- compare: changelog
SET 'table.exec.sink.not-null-enforcer' = 'DROP';
CREATE TABLE early (k STRING, v INT) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/early.jsonl', 'format' = 'changelog-json');
CREATE TABLE s (k STRING, v INT NOT NULL) WITH ('connector' = 'memory', 'changelog' = 'retract');
INSERT INTO s SELECT k, v FROM early WHERE k IN ('c', 'f');
