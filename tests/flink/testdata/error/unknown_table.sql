SELECT * FROM nothere;
