CREATE TABLE impr (iid INT, ad STRING, ts TIMESTAMP(3), WATERMARK FOR ts AS ts - INTERVAL '1' SECOND) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/impr.jsonl', 'format' = 'json');
CREATE TABLE taps (tid INT, ad STRING, cost INT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts - INTERVAL '1' SECOND) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/taps.jsonl', 'format' = 'json');
SELECT TUMBLE_START(ts, INTERVAL '1' MINUTE) AS ws, COUNT(*) AS n FROM (SELECT ad, ts FROM impr UNION ALL SELECT ad, ts FROM taps) GROUP BY TUMBLE(ts, INTERVAL '1' MINUTE);
