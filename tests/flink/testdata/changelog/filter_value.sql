-- compare: changelog
-- A filter may let one half of an update through.
CREATE TABLE chg (id INT, g STRING, v INT) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/chg.jsonl', 'format' = 'changelog-json');
SELECT id, g, v FROM chg WHERE v > 8;
