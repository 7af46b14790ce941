-- How many earthquakes of each magnitude does every hour have, and what was the strongest?
-- The answer goes to a second topic, exactly once: the sink takes part in the job's checkpoints with a Kafka transaction.

SET 'pipeline.name' = 'earthquakes';
SET 'execution.checkpointing.interval' = '1 s';
SET 'parallelism.default' = '2';
-- The job outlives errors, but not for ever: without the demo's broker there is nothing to wait for.
SET 'restart-strategy.type' = 'fixed-delay';
SET 'restart-strategy.fixed-delay.attempts' = '10';

CREATE TABLE quakes (
  id STRING, ts TIMESTAMP_LTZ(3), mag DOUBLE, place STRING,
  WATERMARK FOR ts AS ts - INTERVAL '1' MINUTE
) WITH (
  'connector' = 'kafka', 'topic' = 'quakes',
  'format' = 'json', 'json.timestamp-format.standard' = 'ISO-8601',
  'scan.startup.mode' = 'earliest-offset',
  -- The demo knows how many events it loads; a real job would run on.
  'scan.bounded.mode' = 'specific-offsets',
  'scan.bounded.specific-offsets' = '{{bounds}}'
);

CREATE TABLE quakes_per_hour (
  hour_start TIMESTAMP_LTZ(3), magnitude INT, quakes BIGINT, strongest DOUBLE
) WITH ('connector' = 'kafka', 'topic' = 'quakes_per_hour', 'format' = 'json');

INSERT INTO quakes_per_hour
SELECT window_start, CAST(mag AS INT), COUNT(*), MAX(mag)
FROM TABLE(TUMBLE(TABLE quakes, DESCRIPTOR(ts), INTERVAL '1' HOUR))
GROUP BY window_start, window_end, CAST(mag AS INT);
