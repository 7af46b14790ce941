-- Nexmark query 13: bids joined with a file of pairs i,i. The official text looks rows up in the file by processing time, which
-- Flink's file connector no longer does: the file is a table of versions here, all of one old time, and bids are joined by event time.
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
CREATE TABLE side_input (
    key BIGINT,
    `value` VARCHAR,
    since AS CAST(TIMESTAMP '1970-01-01 00:00:00' AS TIMESTAMP(3)),
    WATERMARK FOR since AS since,
    PRIMARY KEY (key) NOT ENFORCED
) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/side_input.csv', 'format' = 'csv');
CREATE TABLE nexmark_q13 (auction BIGINT, bidder BIGINT, price BIGINT, `dateTime` TIMESTAMP(3), `value` VARCHAR) WITH ('connector' = 'memory', 'changelog' = 'retract');
INSERT INTO nexmark_q13
SELECT
    B.auction,
    B.bidder,
    B.price,
    B.`dateTime`,
    S.`value`
FROM (SELECT *, MOD(auction, 10000) AS mod_auction FROM bid) B
JOIN side_input FOR SYSTEM_TIME AS OF B.`dateTime` AS S
ON B.mod_auction = S.key;
