-- compare: changelog
CREATE TABLE events (k STRING, v INT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/events.jsonl', 'format' = 'json');
SELECT id, v, k FROM (SELECT v AS id, v, k, ROW_NUMBER() OVER (PARTITION BY k ORDER BY v) AS rn FROM events) WHERE rn < 3;
