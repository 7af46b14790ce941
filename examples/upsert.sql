-- A running total by key in a compacted topic: each change of a key replaces the row before.
--
--   streamsql run examples/upsert.sql --embedded-kafka       (from the root of the checkout)
--
-- The sink has a primary key and is written by it. A transaction is used all the same, so that a read_committed consumer
-- sees no value twice. EXPLAIN says so; 'sink.delivery-guarantee' = 'at-least-once' does without.

SET 'table.dml-sync' = 'true';
SET 'parallelism.default' = '1';

CREATE TABLE quakes (id STRING, mag_type STRING, mag DOUBLE) WITH (
  'connector' = 'filesystem', 'path' = 'examples/earthquakes/earthquakes.jsonl', 'format' = 'json'
);
CREATE TABLE by_scale (
  mag_type STRING, quakes BIGINT, strongest DOUBLE,
  PRIMARY KEY (mag_type) NOT ENFORCED
) WITH (
  'connector' = 'upsert-kafka', 'topic' = 'by_scale', 'key.format' = 'json', 'value.format' = 'json',
  'scan.bounded.mode' = 'latest-offset'
);

INSERT INTO by_scale
SELECT mag_type, COUNT(*), MAX(mag) FROM quakes WHERE mag_type IS NOT NULL GROUP BY mag_type;

-- The topic read back is a table again: one row for each key.
SELECT mag_type, quakes, strongest FROM by_scale WHERE quakes >= 10;

-- The same change stream with all its row kinds, kept in files.
CREATE TABLE changes (mag_type STRING, quakes BIGINT) WITH (
  'connector' = 'filesystem', 'path' = '.streamsql/by_scale_changes', 'format' = 'changelog-json'
);
INSERT INTO changes SELECT mag_type, COUNT(*) FROM quakes WHERE mag >= 5 GROUP BY mag_type;
SELECT * FROM changes;
