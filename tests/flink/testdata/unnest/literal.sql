-- compare: changelog
SELECT x FROM UNNEST(ARRAY[3, 1, 2]) AS t(x);
