-- compare: changelog
SET 'table.exec.sink.type-length-enforcer' = 'TRIM_PAD';
CREATE TABLE s (a BINARY(4), b VARBINARY(2)) WITH ('connector' = 'memory');
INSERT INTO s SELECT x'010203', x'0a0b0c';
