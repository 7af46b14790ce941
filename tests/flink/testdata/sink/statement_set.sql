CREATE TABLE events (k STRING, v INT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/events.jsonl', 'format' = 'json');
CREATE TABLE s1 (k STRING, n BIGINT) WITH ('connector' = 'memory', 'changelog' = 'retract');
CREATE TABLE s2 (k STRING, v INT) WITH ('connector' = 'memory');
EXECUTE STATEMENT SET BEGIN
INSERT INTO s1 SELECT k, COUNT(*) FROM events GROUP BY k;
INSERT INTO s2 SELECT k, v FROM events WHERE v > 10;
END;
