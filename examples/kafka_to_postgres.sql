-- One topic into two PostgreSQL tables, exactly once, in one job:
--   large_orders  has no primary key: two-phase commit, a row is there once and only once
--   users         has one: the row of a user is overwritten with the total at each checkpoint
-- EXPLAIN prints which way was taken for each, and why.
--
--   createdb shop
--   psql shop -c 'CREATE TABLE large_orders (order_id bigint, user_id int, amount numeric(10,2))'
--   psql shop -c 'CREATE TABLE users (user_id int PRIMARY KEY, orders bigint, total numeric)'
--   kafka-topics.sh --bootstrap-server localhost:9092 --create --topic orders
--   streamsql run examples/kafka_to_postgres.sql
--
-- A record looks like {"order_id":1,"user_id":7,"amount":12.50}. The job runs until Ctrl-C and goes on from there when it
-- is run again.

SET 'pipeline.name' = 'shop';
SET 'execution.checkpointing.interval' = '1 s';

CREATE TABLE orders (order_id BIGINT, user_id INT, amount DECIMAL(10, 2)) WITH (
  'connector' = 'kafka', 'topic' = 'orders', 'properties.bootstrap.servers' = 'localhost:9092',
  'scan.startup.mode' = 'earliest-offset', 'format' = 'json'
);
CREATE TABLE large_orders (order_id BIGINT, user_id INT, amount DECIMAL(10, 2)) WITH (
  'connector' = 'postgres', 'url' = 'postgres://localhost:5432/shop', 'table-name' = 'large_orders'
);
CREATE TABLE users (
  user_id INT, orders BIGINT, total DECIMAL(38, 2), PRIMARY KEY (user_id) NOT ENFORCED
) WITH (
  'connector' = 'postgres', 'url' = 'postgres://localhost:5432/shop', 'table-name' = 'users'
);

EXECUTE STATEMENT SET BEGIN
  INSERT INTO large_orders SELECT order_id, user_id, amount FROM orders WHERE amount >= 100;
  INSERT INTO users SELECT user_id, COUNT(*), SUM(amount) FROM orders GROUP BY user_id;
END;
