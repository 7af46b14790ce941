-- compare: changelog
-- differs: NULL in VALUES takes the type of its column
CREATE TABLE s (id INT, name STRING) WITH ('connector' = 'memory');
INSERT INTO s VALUES (1, 'a'), (2, NULL), (CAST(NULL AS INT), 'c');
