-- JSON lines in, CSV files out, with an event-time window between: the strongest earthquakes of each day.
-- Files become visible when the checkpoint that holds their rows is complete; readers never see half a file.
--
--   streamsql run examples/files_to_files.sql       (from the root of the checkout)

-- INSERT waits for its job, so that the SELECT below finds the files.
SET 'table.dml-sync' = 'true';
-- Every writer makes its own files; one is enough here.
SET 'parallelism.default' = '1';

CREATE TABLE quakes (
  id STRING, ts TIMESTAMP_LTZ(3), mag DOUBLE, place STRING, depth_km DOUBLE,
  WATERMARK FOR ts AS ts - INTERVAL '1' MINUTE
) WITH (
  'connector' = 'filesystem', 'path' = 'examples/earthquakes/earthquakes.jsonl',
  'format' = 'json', 'json.timestamp-format.standard' = 'ISO-8601'
);

CREATE TABLE quakes_per_day (
  day_start TIMESTAMP_LTZ(3), quakes BIGINT, strong BIGINT, strongest DOUBLE
) WITH (
  'connector' = 'filesystem', 'path' = '.streamsql/quakes_per_day', 'format' = 'csv'
);

INSERT INTO quakes_per_day
SELECT window_start, COUNT(*), COUNT(*) FILTER (WHERE mag >= 4), MAX(mag)
FROM TABLE(TUMBLE(TABLE quakes, DESCRIPTOR(ts), INTERVAL '1' DAY))
GROUP BY window_start, window_end;

SELECT * FROM quakes_per_day;
