-- compare: changelog
SELECT x, i FROM UNNEST(ARRAY['a', 'b']) WITH ORDINALITY AS t(x, i);
