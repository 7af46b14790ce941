-- compare: kinds
CREATE TABLE past (v INT, ts AS TIMESTAMPADD(SECOND, COALESCE(v, 0), TIMESTAMP '1969-12-31 23:59:50'), WATERMARK FOR ts AS ts - INTERVAL '1' MINUTE) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/events.jsonl', 'format' = 'json');
SELECT window_start, window_end, COUNT(*) AS n FROM TABLE(TUMBLE(TABLE past, DESCRIPTOR(ts), INTERVAL '7' SECOND)) WHERE v IS NOT NULL GROUP BY window_start, window_end;
