CREATE TABLE plainev (k STRING, v INT, ts TIMESTAMP(3)) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/events.jsonl', 'format' = 'json');
SELECT * FROM TABLE(TUMBLE(TABLE plainev, DESCRIPTOR(ts), INTERVAL '10' SECOND));
