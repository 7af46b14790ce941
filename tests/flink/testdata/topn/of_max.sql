CREATE TABLE events (k STRING, v INT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/events.jsonl', 'format' = 'json');
SELECT k, hi, rn FROM (SELECT *, ROW_NUMBER() OVER (ORDER BY hi DESC) AS rn FROM (SELECT k, MAX(v) AS hi FROM events WHERE k IS NOT NULL GROUP BY k)) WHERE rn <= 2;
