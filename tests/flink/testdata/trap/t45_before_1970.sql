-- compare: changelog
CREATE TABLE past (id INT, ts AS TIMESTAMPADD(SECOND, -id, TIMESTAMP '1970-01-01 00:00:00'), WATERMARK FOR ts AS ts - INTERVAL '1' HOUR) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/nums.jsonl', 'format' = 'json');
SELECT id, window_start, window_end FROM TABLE(TUMBLE(TABLE past, DESCRIPTOR(ts), INTERVAL '5' SECOND));
