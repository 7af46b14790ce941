CREATE TABLE events (k STRING, v INT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/events.jsonl', 'format' = 'json');
SELECT * FROM (SELECT k, ts, COUNT(*) AS n FROM events GROUP BY k, ts) MATCH_RECOGNIZE (PARTITION BY k ORDER BY ts MEASURES A.n AS ap ONE ROW PER MATCH AFTER MATCH SKIP PAST LAST ROW PATTERN (A B) DEFINE B AS B.n > A.n) m;
