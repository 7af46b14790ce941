-- compare: changelog
CREATE TABLE events (k STRING, v INT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/events.jsonl', 'format' = 'json');
CREATE TABLE s (a TIMESTAMP_LTZ(3), b TIMESTAMP(0), c DATE) WITH ('connector' = 'memory');
INSERT INTO s SELECT ts, ts, ts FROM events WHERE v < 3;
