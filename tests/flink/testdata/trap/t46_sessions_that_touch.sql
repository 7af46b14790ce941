CREATE TABLE touch (id INT, ts AS TIMESTAMPADD(SECOND, id * 10, TIMESTAMP '2024-01-01 00:00:00'), WATERMARK FOR ts AS ts - INTERVAL '1' HOUR) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/nums.jsonl', 'format' = 'json');
SELECT window_start, window_end, COUNT(*) AS n FROM TABLE(SESSION(TABLE touch, DESCRIPTOR(ts), INTERVAL '10' SECOND)) GROUP BY window_start, window_end;
