-- Counts and sums of each channel and minute: JSON to JSON, exactly once.
CREATE TABLE bid (auction BIGINT, bidder BIGINT, price BIGINT, channel STRING, url STRING, ts TIMESTAMP(3), extra STRING,
  WATERMARK FOR ts AS ts - INTERVAL '4' SECOND) WITH ($in);
CREATE TABLE out_bid (window_start TIMESTAMP(3), channel STRING, n BIGINT, total BIGINT, top BIGINT) WITH ($out);
INSERT INTO out_bid SELECT window_start, channel, COUNT(*), SUM(price), MAX(price)
  FROM TABLE(TUMBLE(TABLE bid, DESCRIPTOR(ts), INTERVAL '1' MINUTE)) GROUP BY window_start, window_end, channel;
