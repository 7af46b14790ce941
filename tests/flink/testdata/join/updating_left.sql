CREATE TABLE chg (id INT, g STRING, v INT) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/chg.jsonl', 'format' = 'changelog-json');
CREATE TABLE chg2 (id INT, g STRING, v INT) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/chg2.jsonl', 'format' = 'changelog-json');
SELECT l.id, l.g, r.g AS h FROM chg l LEFT JOIN chg2 r ON l.id = r.id;
