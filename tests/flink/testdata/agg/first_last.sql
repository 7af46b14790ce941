-- compare: changelog
CREATE TABLE orders (id INT, cust STRING, product STRING, qty INT, price DECIMAL(10, 2), ts TIMESTAMP(3),
  WATERMARK FOR ts AS ts - INTERVAL '5' SECOND) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/orders.jsonl', 'format' = 'json');
SELECT cust, FIRST_VALUE(product) AS f, LAST_VALUE(product) AS l, LAST_VALUE(qty) AS q FROM orders GROUP BY cust;
