// Package streamsql is streaming SQL in a Go program: it runs Flink SQL over Kafka, PostgreSQL, files and Go channels,
// with source positions, state and output committed together, exactly once.
//
//	eng, err := streamsql.Open("state", nil)          // a directory for tables, checkpoints and state
//	defer eng.Close()                                  // stops jobs at a final checkpoint
//	_, err = eng.Exec(ctx, `CREATE TABLE orders (…) WITH ('connector' = 'kafka', …)`)
//	res, err := eng.Exec(ctx, `INSERT INTO totals SELECT … FROM orders …`)
//	err = res.Job.Wait(ctx)                            // until the input ends or the job is stopped
//
// A SELECT returns its rows as they come:
//
//	res, err := eng.Exec(ctx, `SELECT user_id, COUNT(*) FROM orders GROUP BY user_id`)
//	for change, err := range res.Rows() { … change.Kind, change.Scan(&user, &n) … }
//
// Tables of connector 'memory' are fed and read by the program itself (Feed and Queue), inside the checkpoint: rows
// sent are kept until a checkpoint covers them, rows received were committed by one. Go functions become SQL functions
// with Register.
//
// It imports every layer below; the command line and the REPL use nothing but this package.
package streamsql
