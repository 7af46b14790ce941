-- compare: changelog
CREATE TABLE events_pt (k STRING, v INT, ts TIMESTAMP(3), pt AS PROCTIME()) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/events.jsonl', 'format' = 'json');
SELECT k, v, SUM(v) OVER (PARTITION BY k ORDER BY pt ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) AS s FROM events_pt;
