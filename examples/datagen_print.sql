-- Rows out of nothing, onto the terminal: nothing else is needed to try this.
--
--   streamsql run examples/datagen_print.sql

SET 'parallelism.default' = '1';

CREATE TABLE numbers (
  n INT,
  level STRING
) WITH (
  'connector' = 'datagen',
  'number-of-rows' = '12',
  'fields.n.kind' = 'sequence', 'fields.n.start' = '1', 'fields.n.end' = '12',
  'fields.level.length' = '3'
);

CREATE TABLE multiples (n INT, square INT, parity STRING) WITH ('connector' = 'print', 'print-identifier' = 'multiples');

INSERT INTO multiples
SELECT n, n * n, CASE WHEN MOD(n, 2) = 0 THEN 'even' ELSE 'odd' END
FROM numbers
WHERE MOD(n, 3) = 0;
