-- Nexmark query 12: windows by processing time. Which window a bid falls in depends on the clock, so what is compared is each
-- bidder's bids over all windows. No engine gives out the windows that are open when its input ends: the rows of table later come
-- after the events, keep the job running until then, and are not counted.
-- digest: yes
CREATE TABLE datagen (
    event_type INT,
    person ROW<id BIGINT, name VARCHAR, emailAddress VARCHAR, creditCard VARCHAR, city VARCHAR, state VARCHAR, `dateTime` TIMESTAMP(3), extra VARCHAR>,
    auction ROW<id BIGINT, itemName VARCHAR, description VARCHAR, initialBid BIGINT, reserve BIGINT, `dateTime` TIMESTAMP(3), expires TIMESTAMP(3), seller BIGINT, category BIGINT, extra VARCHAR>,
    bid ROW<auction BIGINT, bidder BIGINT, price BIGINT, channel VARCHAR, url VARCHAR, `dateTime` TIMESTAMP(3), extra VARCHAR>,
    `dateTime` AS CASE WHEN event_type = 0 THEN person.`dateTime` WHEN event_type = 1 THEN auction.`dateTime` ELSE bid.`dateTime` END,
    WATERMARK FOR `dateTime` AS `dateTime` - INTERVAL '4' SECOND
) WITH ('connector' = 'nexmark', 'first-event.rate' = '1000', 'next-event.rate' = '1000', 'events.num' = '100000');
CREATE VIEW bid AS SELECT bid.auction, bid.bidder, bid.price, bid.channel, bid.url, `dateTime`, bid.extra
FROM datagen WHERE event_type = 2;
CREATE TABLE later (bidder BIGINT) WITH ('connector' = 'datagen', 'rows-per-second' = '2', 'fields.bidder.kind' = 'sequence', 'fields.bidder.start' = '-400', 'fields.bidder.end' = '-1');
CREATE VIEW B AS SELECT bidder, PROCTIME() AS p_time FROM (SELECT bidder FROM bid UNION ALL SELECT bidder FROM later);
CREATE TABLE nexmark_q12 (bidder BIGINT, bid_count BIGINT) WITH ('connector' = 'memory', 'changelog' = 'retract');
INSERT INTO nexmark_q12
SELECT bidder, SUM(bid_count)
FROM (
    SELECT
        bidder,
        count(*) as bid_count,
        window_start AS starttime,
        window_end AS endtime
    FROM TABLE(
            TUMBLE(TABLE B, DESCRIPTOR(p_time), INTERVAL '1' SECOND))
    GROUP BY bidder, window_start, window_end)
WHERE bidder >= 0
GROUP BY bidder;
