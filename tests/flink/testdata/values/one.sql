-- compare: changelog
VALUES (1, 'a'), (2, 'bcd');
