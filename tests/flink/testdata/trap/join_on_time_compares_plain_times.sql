CREATE TABLE impr (iid INT, ad STRING, ts TIMESTAMP(3), WATERMARK FOR ts AS ts - INTERVAL '1' SECOND) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/impr.jsonl', 'format' = 'json');
CREATE TABLE taps (tid INT, ad STRING, cost INT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts - INTERVAL '1' SECOND) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/taps.jsonl', 'format' = 'json');
SELECT i.iid, t.tid FROM impr i JOIN taps t ON i.ad = t.ad AND t.ts > i.ts;
