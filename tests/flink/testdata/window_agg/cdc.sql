-- compare: kinds
CREATE TABLE cdc (id INT, g STRING, v INT, ts AS TO_TIMESTAMP_LTZ(CAST(id AS BIGINT) * 1000, 3), WATERMARK FOR ts AS ts) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/chg.jsonl', 'format' = 'changelog-json');
SELECT g, window_start, COUNT(*) AS n, SUM(v) AS s, MAX(v) AS hi FROM TABLE(TUMBLE(TABLE cdc, DESCRIPTOR(ts), INTERVAL '1' HOUR)) GROUP BY g, window_start, window_end;
