CREATE TABLE lt (a INT, b STRING, c INT) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/lt.jsonl', 'format' = 'json');
CREATE TABLE rt (a INT, d STRING, e INT) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/rt.jsonl', 'format' = 'json');
CREATE TABLE s (x INT) WITH ('connector' = 'memory');
EXECUTE STATEMENT SET BEGIN
INSERT INTO s SELECT a FROM lt;
INSERT INTO s SELECT a FROM rt;
END;
