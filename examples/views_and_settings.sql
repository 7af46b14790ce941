-- Names for queries, and settings: views are expanded when a query is planned, settings last for the session.
--
--   streamsql run examples/views_and_settings.sql       (from the root of the checkout)

CREATE TEMPORARY TABLE quakes (
  id STRING, ts TIMESTAMP_LTZ(3), mag DOUBLE, place STRING, depth_km DOUBLE,
  region AS TRIM(COALESCE(SPLIT_INDEX(place, ',', 1), place)),   -- a computed column
  WATERMARK FOR ts AS ts - INTERVAL '1' MINUTE
) WITH (
  'connector' = 'filesystem', 'path' = 'examples/earthquakes/earthquakes.jsonl',
  'format' = 'json', 'json.timestamp-format.standard' = 'ISO-8601'
);

CREATE TEMPORARY VIEW strong_quakes AS SELECT * FROM quakes WHERE mag >= 5;
CREATE TEMPORARY VIEW deep_and_strong (ts, region, mag, depth) AS
  SELECT ts, region, mag, depth_km FROM strong_quakes WHERE depth_km > 100;

SHOW TABLES;
SHOW VIEWS;
DESCRIBE quakes;

SET 'parallelism.default' = '1';
SET 'table.local-time-zone' = 'Asia/Tokyo';   -- what TIMESTAMP_LTZ values are shown in

SELECT ts, region, mag, depth FROM deep_and_strong;

-- In batch mode a query over files gives its final rows once, without the changes that led to them.
SET 'execution.runtime-mode' = 'batch';
WITH by_region AS (SELECT region, COUNT(*) AS n FROM strong_quakes GROUP BY region)
SELECT region, n FROM by_region WHERE n > 1;
RESET 'execution.runtime-mode';
