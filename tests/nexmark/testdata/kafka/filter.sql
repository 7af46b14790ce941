-- The rows that pass a filter, with a computed column: JSON to JSON, exactly once.
CREATE TABLE bid (auction BIGINT, bidder BIGINT, price BIGINT, channel STRING, url STRING, ts TIMESTAMP(3), extra STRING) WITH ($in);
CREATE TABLE out_bid (auction BIGINT, bidder BIGINT, price BIGINT, channel STRING, url STRING, ts TIMESTAMP(3), extra STRING) WITH ($out);
INSERT INTO out_bid SELECT auction, bidder, price * 908 / 1000, channel, url, ts, extra FROM bid WHERE price >= 10000;
