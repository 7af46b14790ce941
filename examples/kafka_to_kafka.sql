-- From topic to topic, exactly once, on a broker inside the streamsql process.
--
--   streamsql run examples/kafka_to_kafka.sql --embedded-kafka       (from the root of the checkout)
--
-- Tables without 'properties.bootstrap.servers' use the embedded broker. With it the same file runs on a cluster.

SET 'execution.checkpointing.interval' = '1 s';
SET 'table.dml-sync' = 'true';

-- 1. Load a topic from a file.
CREATE TABLE quakes_file (id STRING, ts TIMESTAMP_LTZ(3), mag DOUBLE, place STRING) WITH (
  'connector' = 'filesystem', 'path' = 'examples/earthquakes/earthquakes.jsonl',
  'format' = 'json', 'json.timestamp-format.standard' = 'ISO-8601'
);
CREATE TABLE quakes (
  id STRING, ts TIMESTAMP_LTZ(3), mag DOUBLE, place STRING,
  WATERMARK FOR ts AS ts - INTERVAL '1' MINUTE
) WITH (
  'connector' = 'kafka', 'topic' = 'quakes', 'format' = 'json',
  'scan.startup.mode' = 'earliest-offset', 'scan.bounded.mode' = 'latest-offset'
);
SET 'parallelism.default' = '1';  -- keeps the order of the file
INSERT INTO quakes SELECT * FROM quakes_file;
RESET 'parallelism.default';

-- 2. The job: count by hour and magnitude.
CREATE TABLE quakes_per_hour (
  hour_start TIMESTAMP_LTZ(3), magnitude INT, quakes BIGINT, strongest DOUBLE
) WITH (
  'connector' = 'kafka', 'topic' = 'quakes_per_hour', 'format' = 'json',
  'scan.startup.mode' = 'earliest-offset', 'scan.bounded.mode' = 'latest-offset'
);
INSERT INTO quakes_per_hour
SELECT window_start, CAST(mag AS INT), COUNT(*), MAX(mag)
FROM TABLE(TUMBLE(TABLE quakes, DESCRIPTOR(ts), INTERVAL '1' HOUR))
GROUP BY window_start, window_end, CAST(mag AS INT);

-- 3. Look at it: the rows of the topic, added up.
SELECT magnitude, COUNT(*) AS hours, SUM(quakes) AS quakes, MAX(strongest) AS strongest
FROM quakes_per_hour GROUP BY magnitude;
