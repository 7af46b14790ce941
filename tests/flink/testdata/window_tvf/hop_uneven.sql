-- compare: changelog
-- A size that is no multiple of the slide is fine as long as nothing is aggregated.
CREATE TABLE events (k STRING, v INT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/events.jsonl', 'format' = 'json');
SELECT k, v, window_start, window_end FROM TABLE(HOP(TABLE events, DESCRIPTOR(ts), INTERVAL '4' SECOND, INTERVAL '10' SECOND));
