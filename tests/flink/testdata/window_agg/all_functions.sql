-- compare: kinds
CREATE TABLE events_d (k STRING, v INT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts - INTERVAL '10' SECOND) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/events.jsonl', 'format' = 'json');
SELECT window_start, COUNT(*), COUNT(v), SUM(v), AVG(v), MIN(v), MAX(v), STDDEV_POP(v), VAR_SAMP(v), FIRST_VALUE(v), LAST_VALUE(v), LISTAGG(k, '-') FROM TABLE(TUMBLE(TABLE events_d, DESCRIPTOR(ts), INTERVAL '30' SECOND)) GROUP BY window_start, window_end;
