-- The job of the stored savepoints. Every statement is part of what they are compared with: do not change it.
SET 'pipeline.name' = 'stored';
CREATE TABLE gen (j BIGINT, id AS j, k AS j % 5, v AS j * 37 % 23, name AS CONCAT('n', CAST(j % 3 AS STRING)), price AS CAST(j * 1.25 AS DECIMAL(10, 2)),
  ts AS CAST(TIMESTAMP '2025-01-01 00:00:00' + j * INTERVAL '0.100' SECOND AS TIMESTAMP(3)), WATERMARK FOR ts AS ts - INTERVAL '1' SECOND)
  WITH ('connector' = 'datagen', 'rows-per-second' = '$RATE', 'fields.j.kind' = 'sequence', 'fields.j.start' = '0', 'fields.j.end' = '399');
CREATE TABLE grouped (k BIGINT, n BIGINT, d BIGINT, s DECIMAL(38, 2), hi STRING) WITH ('connector' = 'filesystem', 'format' = 'changelog-json', 'path' = '$OUT/grouped');
CREATE TABLE tumbled (k BIGINT, a TIMESTAMP(3), n BIGINT, m DECIMAL(10, 2)) WITH ('connector' = 'filesystem', 'format' = 'changelog-json', 'path' = '$OUT/tumbled');
CREATE TABLE sessions (v BIGINT, a TIMESTAMP(3), b TIMESTAMP(3), n BIGINT) WITH ('connector' = 'filesystem', 'format' = 'changelog-json', 'path' = '$OUT/sessions');
CREATE TABLE joined (a BIGINT, b BIGINT) WITH ('connector' = 'filesystem', 'format' = 'changelog-json', 'path' = '$OUT/joined');
CREATE TABLE ranked (k BIGINT, rn BIGINT, id BIGINT) WITH ('connector' = 'filesystem', 'format' = 'changelog-json', 'path' = '$OUT/ranked');
CREATE TABLE lasts (v BIGINT, name STRING, id BIGINT) WITH ('connector' = 'filesystem', 'format' = 'changelog-json', 'path' = '$OUT/lasts');
CREATE TABLE totals (id BIGINT, n BIGINT) WITH ('connector' = 'filesystem', 'format' = 'changelog-json', 'path' = '$OUT/totals');
CREATE TABLE matched (k BIGINT, a BIGINT, b BIGINT) WITH ('connector' = 'filesystem', 'format' = 'changelog-json', 'path' = '$OUT/matched');
EXECUTE STATEMENT SET BEGIN
INSERT INTO grouped SELECT k, COUNT(*), COUNT(DISTINCT v), SUM(price), MAX(name) FROM gen GROUP BY k;
INSERT INTO tumbled SELECT k, window_start, COUNT(*), MAX(price) FROM TABLE(TUMBLE(TABLE gen, DESCRIPTOR(ts), INTERVAL '7' SECOND)) GROUP BY k, window_start, window_end;
INSERT INTO sessions SELECT v, window_start, window_end, COUNT(*) FROM TABLE(SESSION(TABLE gen PARTITION BY v, DESCRIPTOR(ts), INTERVAL '2' SECOND)) GROUP BY v, window_start, window_end;
INSERT INTO joined SELECT a.id, b.id FROM gen AS a LEFT JOIN gen AS b ON a.id = b.id + 60 AND b.v > 4;
INSERT INTO ranked SELECT k, rn, id FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY v DESC, id) AS rn FROM gen) WHERE rn <= 3;
INSERT INTO lasts SELECT v, name, id FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY v ORDER BY ts DESC) AS rn FROM gen) WHERE rn = 1;
INSERT INTO totals SELECT id, COUNT(*) OVER (PARTITION BY k ORDER BY ts ROWS BETWEEN 4 PRECEDING AND CURRENT ROW) FROM gen;
INSERT INTO matched SELECT * FROM gen MATCH_RECOGNIZE (PARTITION BY k ORDER BY ts MEASURES a.id AS a, b.id AS b AFTER MATCH SKIP PAST LAST ROW PATTERN (a b) DEFINE b AS b.v < a.v);
END;
