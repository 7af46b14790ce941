-- compare: kinds
CREATE TABLE events_d (k STRING, v INT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts - INTERVAL '10' SECOND) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/events.jsonl', 'format' = 'json');
CREATE TABLE s (k STRING, v INT, PRIMARY KEY (k) NOT ENFORCED) WITH ('connector' = 'memory', 'changelog' = 'upsert');
INSERT INTO s SELECT k, v FROM events_d WHERE k IS NOT NULL ON CONFLICT DO DEDUPLICATE;
