// Package slt runs scripts of SQL, rows and expectations (*/*.slt) against the whole engine: parser, planner, executor
// and checkpoints, with tables of connector 'memory'. Scripts are golden files; go test ./tests/slt -rewrite renews them.
//
// A script that starts jobs runs several times, and has to give the same results each time:
//
//	straight    parallelism 1, checkpoints only where the script looks at a result
//	barriers    a checkpoint after every feed
//	crash       a failure at one named point of the protocol after every feed, and a restart; for each point
//	unaligned   parallelism 2 and barriers that overtake rows, a failure at one point and a restart; a changelog is compared by
//	            what it leaves, as a barrier may cut the rows of a feed in two
//	resume      after every feed the job is stopped and started again at another parallelism, with little memory for state
//
// "Same" is the final table of every sink, and for two-phase-commit sinks also the multiset of committed rows, unless the
// script says that a sink's changelog depends on the order in which rows of different keys arrive ("loose").
//
// Commands of a script:
//
//	exec                          statements; prints "ok", notices, rows, or the error. INSERT starts a job
//	eval                          one expression a line; prints value and type of each
//	query [changelog]             a SELECT: its final table, or the changes in order
//	feed TABLE [split=N]          rows as SQL expressions, with a row kind in front when it is not +I
//	rows TABLE                    the rows that lookups of the table find from now on
//	splits TABLE n=N              gives the table N splits
//	fail TABLE [split=N]          reading fails once before the next row
//	close TABLE...                ends the tables and waits for bounded jobs
//	barrier                       checkpoints until every row fed is covered
//	crash at=POINT                the same with a failure at POINT
//	resume parallelism=N          stops the jobs and starts them again
//	stop [drain]                  stops the jobs; drain ends event time
//	await SINK n=N                waits until N rows were shown, without a checkpoint
//	expect table|changelog SINK [loose]
//	late                          rows dropped because their window had closed
//	clock DURATION                moves the jobs' clock on
//	straight                      the script runs straight only
//
// Nothing sleeps: a script waits for checkpoints, committed rows and ends of jobs.
package slt
