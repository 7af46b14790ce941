SET 'table.optimizer.non-deterministic-update.strategy' = 'TRY_RESOLVE';
CREATE TABLE events (k STRING, v INT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/events.jsonl', 'format' = 'json');
CREATE TABLE s (k STRING, n INT, PRIMARY KEY (k) NOT ENFORCED) WITH ('connector' = 'memory', 'changelog' = 'upsert');
INSERT INTO s SELECT k, CHAR_LENGTH(UUID()) FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY ts DESC) AS rn FROM events WHERE k IS NOT NULL) WHERE rn = 1;
