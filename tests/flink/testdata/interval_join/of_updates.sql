CREATE TABLE impr (iid INT, ad STRING, ts TIMESTAMP(3), WATERMARK FOR ts AS ts - INTERVAL '1' SECOND) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/impr.jsonl', 'format' = 'json');
CREATE TABLE taps (tid INT, ad STRING, cost INT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts - INTERVAL '1' SECOND) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/taps.jsonl', 'format' = 'json');
SELECT i.iid, t.n FROM impr i JOIN (SELECT ad, ts, COUNT(*) AS n FROM taps GROUP BY ad, ts) t ON i.ad = t.ad AND t.ts BETWEEN i.ts AND i.ts + INTERVAL '10' SECOND;
