-- compare: changelog
SELECT * FROM (VALUES (1, 2.5, 'a', TRUE, DATE '2024-02-29')) AS t(a, b, c, d, e);
