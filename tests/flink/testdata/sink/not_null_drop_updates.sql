-- compare: changelog
CREATE TABLE chg (id INT, g STRING, v INT) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/chg.jsonl', 'format' = 'changelog-json');
SET 'table.exec.sink.not-null-enforcer' = 'DROP';
CREATE TABLE s (id INT, v INT NOT NULL) WITH ('connector' = 'memory', 'changelog' = 'retract');
INSERT INTO s SELECT id, v FROM chg;
