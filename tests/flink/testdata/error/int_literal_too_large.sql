-- differs: a literal of up to 38 digits is a DECIMAL
SELECT 99999999999999999999 + 1 AS x;
