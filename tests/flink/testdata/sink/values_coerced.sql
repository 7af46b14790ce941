-- compare: changelog
CREATE TABLE s (id BIGINT, price DECIMAL(10, 2), ok BOOLEAN) WITH ('connector' = 'memory');
INSERT INTO s VALUES (1, 2, TRUE), (2, 3.456, FALSE);
