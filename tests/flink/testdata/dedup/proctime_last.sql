-- compare: changelog
-- differs: a row equal to the one it replaces is no change; Flink sends -U and +U of the same row
CREATE TABLE events_pt (k STRING, v INT, ts TIMESTAMP(3), pt AS PROCTIME()) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/events.jsonl', 'format' = 'json');
SELECT k, v FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY pt DESC) AS rn FROM events_pt) WHERE rn = 1;
