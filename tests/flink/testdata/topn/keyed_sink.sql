-- differs: by the key of its input, Flink's Top-N with numbers leaves rows behind that left the first two
CREATE TABLE scores (id BIGINT, score BIGINT, PRIMARY KEY (id) NOT ENFORCED) WITH ('connector' = 'filesystem', 'path' = 'testdata/input/scores.jsonl', 'format' = 'changelog-json');
CREATE TABLE best (id BIGINT, score BIGINT, place BIGINT, PRIMARY KEY (id) NOT ENFORCED) WITH ('connector' = 'memory', 'changelog' = 'upsert');
INSERT INTO best SELECT id, score, place FROM (SELECT *, ROW_NUMBER() OVER (ORDER BY score) AS place FROM scores) WHERE place <= 2;
