-- compare: changelog
CREATE TABLE events (k STRING, v INT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/events.jsonl', 'format' = 'json');
SELECT v, window_start, window_end FROM TABLE(CUMULATE(DATA => TABLE events, TIMECOL => DESCRIPTOR(ts), STEP => INTERVAL '10' SECOND, SIZE => INTERVAL '30' SECOND, `OFFSET` => INTERVAL '5' SECOND));
