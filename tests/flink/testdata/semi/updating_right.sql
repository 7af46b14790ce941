CREATE TABLE chg (id INT, g STRING, v INT) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/chg.jsonl', 'format' = 'changelog-json');
CREATE TABLE chg2 (id INT, g STRING, v INT) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/chg2.jsonl', 'format' = 'changelog-json');
SELECT g, id FROM chg WHERE id IN (SELECT id FROM chg2);
