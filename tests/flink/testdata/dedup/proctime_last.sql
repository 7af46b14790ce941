-- A row equal to the one it replaces is a change when the clock has moved: only what is left can be compared.
CREATE TABLE events_pt (k STRING, v INT, ts TIMESTAMP(3), pt AS PROCTIME()) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/events.jsonl', 'format' = 'json');
SELECT k, v FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY pt DESC) AS rn FROM events_pt) WHERE rn = 1;
